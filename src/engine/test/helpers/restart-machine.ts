import { closeSync, openSync } from 'node:fs';
import { readNote, writeNote } from '../../storage/file/durable-note.js';

const PAGE_BYTES = 4096;
const OTHER_BOOT = '1'.repeat(32);

/** Makes a data file that no process has open look as if the machine had been started again since it was written. */
export function restartMachine(path: string): void {
  const file = openSync(path, 'r+');
  const note = readNote(file, PAGE_BYTES);
  if (note !== null) writeNote(file, PAGE_BYTES, note, OTHER_BOOT);
  closeSync(file);
}
