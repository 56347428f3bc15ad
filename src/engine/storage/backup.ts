import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { open } from 'lmdb';
import { ownTurn } from '../../turns.js';
import { type Environment, STORE_OPTIONS } from './file/environment.js';
import { holdSnapshot } from './file/guard-reads.js';
import { translateStorageError } from './file/translate-error.js';

/** Entries copied in one turn where LMDB cannot copy the file. */
const ENTRIES_AT_ONCE = 500;

/**
 * Writes a consistent copy of the data file, as of one moment, to `path` while reading and writing go on. The copy
 * appears under its name only when it is complete and on the disk. A file that may only be read is copied entry by
 * entry: LMDB does not copy one with a broken list of free pages, and the copy gets a list of its own.
 */
export async function copyDataFile(environment: Environment, path: string): Promise<void> {
  const partial = `${path}.part`;
  try {
    removePartial(partial);
    if (environment.refusal === null) await environment.store.backup(partial, true);
    else await copyEntries(environment, partial);
    const file = openSync(partial, 'r+');
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(partial, path);
    removePartial(partial);
  } catch (error) {
    removePartial(partial);
    throw translateStorageError(error, path);
  }
}

/** The file with its lock. */
function removePartial(partial: string): void {
  for (const path of [partial, `${partial}-lock`]) rmSync(path, { force: true });
}

async function copyEntries({ store }: Environment, path: string): Promise<void> {
  const copy = open<Buffer, Buffer>({ ...STORE_OPTIONS, path });
  const snapshot = holdSnapshot(store);
  try {
    let last: Buffer = Buffer.from([0]);
    for (let isOver = false; !isOver;) {
      const range = { start: last, exclusiveStart: true, limit: ENTRIES_AT_ONCE, transaction: snapshot };
      const entries = [...store.getRange(range)];
      copy.transactionSync(() => {
        for (const { key, value } of entries) copy.putSync(key, value);
      });
      last = entries.at(-1)?.key ?? last;
      isOver = entries.length < ENTRIES_AT_ONCE;
      await ownTurn();
    }
  } finally {
    snapshot.done();
    await copy.close();
  }
}
