import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import type { Environment } from './file/environment.js';
import { translateStorageError } from './file/translate-error.js';

/**
 * Writes a consistent copy of the data file, as of one moment, to `path` while reading and writing go on. The copy
 * appears under its name only when it is complete and on the disk.
 */
export async function copyDataFile({ store }: Environment, path: string): Promise<void> {
  const partial = `${path}.part`;
  try {
    rmSync(partial, { force: true });
    await store.backup(partial, true);
    const file = openSync(partial, 'r+');
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw translateStorageError(error, path);
  }
}
