import { closeSync, openSync, readSync, renameSync } from 'node:fs';
import { open, type RootDatabase } from 'lmdb';
import { verifyFile } from './checks/verify.js';
import { readNote, writeNote } from './file/durable-note.js';
import { STORE_OPTIONS } from './file/environment.js';
import { numberAt, PageError, readFirstPages, TRANSACTION_AT } from './file/page-layout.js';
import { syncToDisk } from './sync-to-disk.js';

/** What the process that copies reports when it has ended its work. */
export type CopyReport = { problems: string[] } | { error: { message: string; code?: string } };

type Store = RootDatabase<Buffer, Buffer>;

/** Entries that are copied by one transaction. */
const ENTRIES_AT_ONCE = 500;

/** The program of the process that `copyDataFile` starts: copies the data file and verifies the copy. */
async function copy(from: string, to: string): Promise<CopyReport> {
  try {
    const store = openStore(from, true);
    // Page by page, as they are. A compacting copy follows the pages of the tree and crashes on damaged ones.
    await store.backup(to, false);
    await store.close();
    trustNewest(to);
    let problems = await verifyFile(to);
    if (problems.length > 0) {
      // Without a list of free pages everything may be whole: then the entries get a new one.
      problems = await verifyFile(to, { freePages: false });
      if (problems.length === 0) await renewFile(to);
    }
    syncToDisk(to);
    return { problems };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return { error: { message, ...(code !== undefined && { code }) } };
  }
}

/** A copy has the newest commit alone as a whole, also where the disk did not have it yet. */
function trustNewest(path: string): void {
  const file = openSync(path, 'r+');
  try {
    const { pageBytes } = readFirstPages(file);
    const transactions = [0, pageBytes].map((page) => {
      const bytes = Buffer.alloc(8);
      readSync(file, bytes, 0, bytes.length, page + TRANSACTION_AT);
      return numberAt(bytes, 0);
    });
    const takenBack = readNote(file, pageBytes)?.takenBack ?? 0;
    writeNote(file, pageBytes, { transaction: Math.max(...transactions), takenBack });
  } catch (error) {
    // Verifying names what is damaged.
    if (!(error instanceof PageError)) throw error;
  } finally {
    closeSync(file);
  }
}

function openStore(path: string, readOnly: boolean): Store {
  return open<Buffer, Buffer>({ ...STORE_OPTIONS, path, readOnly });
}

/** Puts all entries of a file whose pages are whole into a new one, which takes its place. */
async function renewFile(path: string): Promise<void> {
  const renewed = `${path}.new`;
  const store = openStore(path, true);
  const file = openStore(renewed, false);
  let last: Buffer = Buffer.from([0]);
  for (let isOver = false; !isOver;) {
    const entries = [...store.getRange({ start: last, exclusiveStart: true, limit: ENTRIES_AT_ONCE })];
    file.transactionSync(() => {
      for (const { key, value } of entries) file.putSync(key, value);
    });
    last = entries.at(-1)?.key ?? last;
    isOver = entries.length < ENTRIES_AT_ONCE;
  }
  await store.close();
  await file.close();
  renameSync(renewed, path);
}

process.umask(0o077);
// The one that asked for the copy has the report, or has ended.
process.once('disconnect', () => process.exit());
const [from = '', to = ''] = process.argv.slice(2);
process.send!(await copy(from, to));
