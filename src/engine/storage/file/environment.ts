import {
  constants,
  accessSync,
  appendFileSync,
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { open, type RootDatabase } from 'lmdb';
import { KNOWS_BOOT } from './durable-note.js';
import { checkRecord, FORMAT_RECORD } from '../format/format-record.js';
import { FORMAT_KEY } from '../format/key-spaces.js';
import { guardReads } from './guard-reads.js';
import { LastCommit } from './last-commit.js';
import { readFirstPages, LAST_PAGE_AT, MAGIC, MAGIC_AT, META_BYTES, PAGE_BYTES_AT, PageError } from './page-layout.js';
import { damagedFile, StorageError } from '../storage-error.js';
import { beginClosing, beginOpening, lockOf, markOpen, noteLock, requireSameLock } from './open-marks.js';
import { PageRanges } from './page-ranges.js';
import { Preallocation, requireCopyRoom, type TransactionSize } from './preallocation.js';
import { FileReader } from './reader.js';
import { SafeCommits } from './safe-commits.js';
import { failedWrite, MAP_BYTES, translateStorageError } from './translate-error.js';

/** `full`: every commit is on the disk before it is acknowledged. `relaxed`: a power loss may take the last commits. */
export type Durability = 'full' | 'relaxed';

export const DATA_FILE = 'bsvc.mdb';

/** Time for which a commit trusts that the file is still where it was. */
const PLACE_MS = 100;
const REPLACED =
  ', or its lock file, was removed or replaced while it was open. Nothing is written to it any more; start again with the right data directory.';
/** What can be done about a file that is not opened. */
const SAVE = '"bsvc doctor --repair" saves what is left of it, a backup brings everything back.';
/** Processes that read and views that their commands hold; LMDB's own number is 126. */
const MAX_READERS = 1024;
/**
 * The mode of a new file and of its lock, also in a directory that others may look into; lmdb's types do not know it.
 */
const OWNER_ONLY = { permissionsMode: 0o600 };
/** How each file of ours is opened, whatever for. */
export const STORE_OPTIONS = {
  noSubdir: true,
  keyEncoding: 'binary',
  encoding: 'binary',
  overlappingSync: false,
  ...OWNER_ONLY,
  // The process that creates the lock file sets it for all others.
  maxReaders: MAX_READERS,
} as const;
/** The LMDB environment with binary keys and values, opened in the one way that was found safe. */
export interface Environment {
  readonly path: string;
  readonly store: RootDatabase<Buffer, Buffer>;
  readonly reader: FileReader;
  /** The file as pages, to count by. */
  readonly pages: PageRanges;
  /**
   * Runs the work in one write transaction and commits it; see `LastCommit` for why no other way is safe. Returns the
   * last commit afterwards, which others see from then on, and which a power loss can take until `commits.safe` has
   * reached it. Null: nothing was done, as the disk may not have the one before; `sync` first. Throws NO_SPACE when the
   * disk may have no room for as much as the work says that it has written.
   */
  tryCommit: (work: () => TransactionSize | undefined) => number | null;
  /** As `tryCommit`, but waits for the disk: for what is done while the file is opened. */
  commit: (work: () => TransactionSize | undefined) => void;
  /** Has the disk take what is committed. All commits are refused after a failure: who knows what the disk has. */
  sync(): Promise<void>;
  /** Which commits the disk has. */
  readonly commits: SafeCommits;
  /** Refuses all commits from now on with this error, unless an earlier one does already; reading goes on. */
  refuse(error: StorageError): void;
  /** Why commits are refused, null as long as they are not. */
  readonly refusal: StorageError | null;
  /** Refuses commits when the open file is not the one at its path any more: what it got would be lost. */
  checkPlace(): void;
  /** Sets right what a process that was killed while it committed has left: readers would not see its last commit. */
  catchUp(): void;
  /** True when the disk is nearly full: work that can be cut into pieces should be. */
  isTight: () => boolean;
  close(): Promise<void>;
}

/**
 * Opens or creates the data file. Throws StorageError when the directory cannot be written to or when the file is not
 * ours, is cut short, or was written by a newer version.
 */
export function openEnvironment(dataDir: string, durability: Durability): Environment {
  const path = join(dataDir, DATA_FILE);
  prepareDirectory(dataDir);
  requireDescriptors();
  // Threads come and go within their process.
  const unmark = isMainThread ? markOpen(dataDir) : () => undefined;
  try {
    return openMarked(dataDir, path, durability, unmark);
  } catch (error) {
    unmark();
    throw error;
  }
}

function openMarked(dataDir: string, path: string, durability: Durability, unmark: () => void): Environment {
  requireSameLock(dataDir, lockOf(path));
  // Opening changes the lock file, which is mapped.
  const isCopied = requireCopyRoom(path);
  const short = inspectDataFile(path);
  let store: RootDatabase<Buffer, Buffer>;
  // Threads open and close what their process has open.
  const endOpening = isMainThread ? beginOpening(dataDir) : () => undefined;
  try {
    store = open<Buffer, Buffer>({
      ...STORE_OPTIONS,
      path,
      noSync: KNOWS_BOOT,
      noMetaSync: durability === 'relaxed',
      mapSize: MAP_BYTES,
    });
  } catch (error) {
    throw translateStorageError(error, path);
  } finally {
    endOpening();
  }
  if (isMainThread) noteLock(dataDir, lockOf(path));
  guardReads(store);
  const lastCommit = new LastCommit(store, path);
  const commits = new SafeCommits(path, lastCommit, durability === 'full');
  const preallocation = new Preallocation(path, store, isCopied);
  // A thread that is ended would end the locks of its process with the lock file.
  const pages = new PageRanges(path, isMainThread ? () => lastCommit.note() : undefined);
  let refusal: StorageError | null = null;
  let placeSeenAt = 0;
  const environment: Environment = {
    path,
    store,
    reader: new FileReader(store),
    pages,
    commits,
    get refusal() {
      return refusal;
    },
    refuse: (error) => {
      refusal ??= error;
    },
    checkPlace: () => {
      placeSeenAt = performance.now();
      if (!lastCommit.isInPlace()) refusal ??= new StorageError('REPLACED', `${path}${REPLACED}`);
      else if (commits.hasFailed()) refusal ??= failedWrite(path);
    },
    tryCommit: (work) => {
      if (performance.now() - placeSeenAt > PLACE_MS) environment.checkPlace();
      if (refusal !== null) throw refusal;
      let isDone = false;
      try {
        lastCommit.follow((last, state) => {
          isDone = commits.note(last);
          const size = isDone ? work() : undefined;
          if (size !== undefined) preallocation.ensure(state(), size);
        });
      } catch (error) {
        if (isGivenUp(store)) refusal ??= failedWrite(path, error);
        throw error;
      }
      return isDone ? lastCommit.read() : null;
    },
    commit: (work) => {
      while (environment.tryCommit(work) === null) commits.syncNow();
    },
    sync: async () => {
      try {
        await commits.sync();
      } catch (error) {
        refusal ??= failedWrite(path, error);
        throw refusal;
      }
    },
    catchUp: () => {
      if (lastCommit.isBehind()) environment.tryCommit(() => undefined);
    },
    isTight: () => preallocation.isTight,
    close: async () => {
      const endClosing = isMainThread ? await beginClosing(dataDir) : () => undefined;
      await store.close();
      endClosing();
      lastCommit.close();
      preallocation.close();
      pages.close();
      unmark();
    },
  };
  try {
    if (isMainThread) recover(environment);
    if (short) readEverything(environment);
    checkFormat(environment);
    refuseRepaired(environment, dataDir);
    if (isMainThread && !lastCommit.isKnown()) environment.tryCommit(() => undefined);
  } catch (error) {
    void environment.close();
    throw error;
  }
  return environment;
}

/** Takes back a commit that the disk may have in part, before anything reads it. */
function recover(environment: Environment): void {
  try {
    environment.commits.recover(() => listProcesses(environment).every((pid) => pid === process.pid));
  } catch (error) {
    throw translateStorageError(error, environment.path);
  }
}

/** After a failed write of a first page LMDB neither reads nor writes any more until the file is opened again. */
function isGivenUp(store: RootDatabase<Buffer, Buffer>): boolean {
  try {
    store.resetReadTxn();
    store.getBinary(FORMAT_KEY);
    return false;
  } catch (error) {
    return /MDB_PANIC/.test(String(error));
  }
}

function prepareDirectory(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new StorageError('NOT_WRITABLE', `The data directory ${dataDir} cannot be written to.`, error);
  }
}

/** The files that an open store keeps, and those that opening it reads. */
const DESCRIPTORS = 12;

/** Throws EMFILE when a store could not be opened to the end: LMDB ends the process by a signal where it has few. */
function requireDescriptors(): void {
  const taken: number[] = [];
  try {
    while (taken.length < DESCRIPTORS) taken.push(openSync(devNull, 'r'));
  } finally {
    for (const file of taken) closeSync(file);
  }
}

/** LMDB does not write pages that were allocated and freed in one transaction, so the end may be missing a few. */
const UNWRITTEN_PAGES = 32;

/**
 * Checks the data file before it is mapped: reading a page beyond the end of a mapped file kills the process. Returns
 * true when a few pages are missing at the end, which may or may not be harmless.
 */
function inspectDataFile(path: string): boolean {
  let file: number;
  try {
    file = openSync(path, constants.O_RDWR);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw new StorageError('NOT_WRITABLE', `The data file ${path} cannot be opened for writing.`, error);
  }
  try {
    return inspectOpenFile(file, path);
  } finally {
    closeSync(file);
  }
}

function inspectOpenFile(file: number, path: string): boolean {
  const first = Buffer.alloc(META_BYTES);
  const length = readSync(file, first, 0, META_BYTES, 0);
  // Another process may be creating the file at this moment; LMDB handles an empty file itself.
  if (length === 0) return false;
  const second = Buffer.alloc(META_BYTES);
  const secondLength = readSync(file, second, 0, META_BYTES, first.readUInt32LE(PAGE_BYTES_AT) || 4096);
  const isOurs = [first, second].map((page) => page.readUInt32LE(MAGIC_AT) === MAGIC);
  if (length < META_BYTES || !isOurs.some(Boolean)) {
    throw new StorageError('FOREIGN', `${path} is not a data file of bsvc; move it away or restore a backup.`);
  }
  if (secondLength < META_BYTES) throw new StorageError('TRUNCATED', `${path} is cut short; ${SAVE}`);
  let newest: { pageBytes: number; newest: Buffer };
  try {
    newest = readFirstPages(file);
  } catch (error) {
    if (!(error instanceof PageError)) throw error;
    throw damagedFile(path, error.message);
  }
  const { pageBytes, newest: newer } = newest;
  const expected = (Number(newer.readBigUInt64LE(LAST_PAGE_AT)) + 1) * pageBytes;
  const missing = expected - fstatSync(file).size;
  if (missing <= 0) return false;
  if (missing > UNWRITTEN_PAGES * pageBytes) {
    throw new StorageError('TRUNCATED', `${path} is cut short by ${missing} bytes; ${SAVE}`);
  }
  // Zeros instead of nothing: if the pages do matter, LMDB then reports damage instead of crashing. They are appended
  // because another process may be writing: setting the file's length could take away what it has added since.
  appendFileSync(path, Buffer.alloc(missing));
  return true;
}

function readEverything({ store, path, commit }: Environment): void {
  try {
    for (const _entry of store.getRange({ start: Buffer.from([0]) })) {
      // Each value is copied, and thereby read.
    }
    // The list of free pages is read by writers alone.
    const format = store.getBinary(FORMAT_KEY);
    if (format !== undefined) {
      commit(() => {
        store.putSync(FORMAT_KEY, format);
        return undefined;
      });
    }
  } catch (error) {
    const known = translateStorageError(error, path);
    if (known instanceof StorageError && known.code === 'NO_SPACE') throw known;
    throw new StorageError('TRUNCATED', `${path} is cut short; ${SAVE}`, error);
  }
}

function checkFormat({ store, path, commit }: Environment): void {
  store.resetReadTxn();
  let record = store.getBinary(FORMAT_KEY);
  if (record === undefined) {
    const empty = [...store.getKeys({ start: Buffer.from([0]), limit: 1 })].length === 0;
    if (!empty) throw new StorageError('FOREIGN', `${path} is an LMDB file of something else than bsvc.`);
    try {
      commit(() => {
        if (store.getBinary(FORMAT_KEY) !== undefined) return undefined;
        store.putSync(FORMAT_KEY, FORMAT_RECORD);
        return undefined;
      });
    } catch (error) {
      throw translateStorageError(error, path);
    }
    record = store.getBinary(FORMAT_KEY)!;
  }
  checkRecord(Buffer.from(record), path);
}

/** The process that repairs a file counts on nobody else opening it until then. */
function refuseRepaired(environment: Environment, dataDir: string): void {
  const repairer = findRepairer(dataDir, () => listProcesses(environment));
  if (repairer === null) return;
  const message = `${environment.path} is being repaired by process ${repairer}; try again when it has ended.`;
  throw new StorageError('BUSY', message);
}

/** Ids of the processes that have the data file open, this one included; dead ones are forgotten first. */
export function listProcesses({ store }: Pick<Environment, 'store'>): number[] {
  store.readerCheck();
  const rows = store.readerList().matchAll(/^\s*(\d+) /gm);
  return [...new Set(Array.from(rows, ([, pid]) => Number(pid)))];
}

/** Holds the id of the process that repairs the store. */
const MARK_FILE = 'repairing';

/** Marks the store as being repaired by this process; to be called before it looks who else has the file open. */
export function markRepair(dataDir: string): void {
  writeFileSync(join(dataDir, MARK_FILE), `${process.pid}\n`, { mode: 0o600 });
}

/** Takes the mark of this process away. */
export function unmarkRepair(dataDir: string): void {
  rmSync(join(dataDir, MARK_FILE), { force: true });
}

/**
 * The process that is repairing the store, null for none. `processes`: those that have the file open; a mark of another
 * was left by one that was killed.
 */
function findRepairer(dataDir: string, processes: () => readonly number[]): number | null {
  let pid: number;
  try {
    pid = Number(readFileSync(join(dataDir, MARK_FILE), 'utf8'));
  } catch {
    return null;
  }
  return pid !== process.pid && processes().includes(pid) ? pid : null;
}
