import type { GrowthBound } from './storage/checks/document-checks.js';
import { watch } from 'node:fs';
import { join } from 'node:path';
import type { Core } from './commands/command.js';
import { storageStats, type StorageStats } from './commands/administration.js';
import { Cursors } from './commands/read/cursors.js';
import { Transactions } from './commands/transactions.js';
import { expireDocuments } from './commands/write/delete.js';
import type { DataDb } from './transports/in-process/contract.js';
import { type ChangeLogs, openChangeLogs } from './transports/in-process/change-logs.js';
import { openDataDb } from './transports/in-process/database.js';
import { insertTogether } from './transports/in-process/insert-together.js';
import {
  type AppModified,
  type AppTurn,
  type Exists,
  type ReadFields,
  transactInProcess,
  type Transaction,
  type Transform,
  transformInProcess,
  transformTogether,
} from './transports/in-process/transform.js';
import { listen, ListenError, type Listener } from './transports/wire/listen.js';
import { ReaderPool } from './readers/reader-pool.js';
import { copyDataFile } from './storage/backup.js';
import { DATA_FILE, type Durability, type Environment, listProcesses } from './storage/file/environment.js';
import { lockOf } from './storage/file/open-marks.js';
import { type HeldSnapshot, openStorage, type Storage } from './storage/storage.js';
import { lookAfterKill } from './storage/checks/look-after-kill.js';
import { resumeBuilds } from './storage/catalog/index-build.js';
import { reclaimDropped } from './storage/file/reclaim.js';
import type { MetDamage } from './storage/checks/damage-notes.js';
import { CommitProbe } from './storage/commit-probe.js';
import { type Scheduler, scheduleBy } from './scheduler.js';
import { StorageError, type StorageErrorCode } from './storage/storage-error.js';
import type { LongRead } from './storage/long-read.js';
import { repairFile, type RepairedCollection, type RepairOptions, type RepairReport } from './storage/repair/repair.js';
import { verifyFile, type VerifyOptions, verifyStorage } from './storage/checks/verify.js';

export type {
  DataAggregationCursor,
  DataCollection,
  DataCursor,
  DataDb,
  DataFindCursor,
} from './transports/in-process/contract.js';
export { openMatcher } from './transports/in-process/change-logs.js';
export type { ChangeLogs, LogSearch, Matcher } from './transports/in-process/change-logs.js';
export { type StorageStats } from './commands/administration.js';
export type { AppModified, AppTurn, Exists, ReadFields, Transaction, Transform };
export type { AskedPage, FoundPage } from './commands/read/page-read.js';
export type { LongRead } from './storage/long-read.js';
export { type MetDamage } from './storage/checks/damage-notes.js';
export { type HeldSnapshot } from './storage/storage.js';
export { type RepairedCollection, type RepairReport, type VerifyOptions };
export type { Scheduler } from './scheduler.js';
export { DATA_FILE, type Durability, lookAfterKill, ListenError, type Listener, StorageError, type StorageErrorCode };

export interface EngineOptions {
  /** Made with mode 0700 when it does not exist; several processes may open it at once. */
  dataDir: string;
  /** `full` by default: an acknowledged write survives a power loss. */
  durability?: Durability;
  /** As the driver's option: fields whose value is `undefined` are left out instead of becoming null. */
  ignoreUndefined?: boolean;
  /**
   * Most threads for reads that would keep this one busy, each started when it is first needed; 0 (the default): no
   * others.
   */
  readerThreads?: number;
  /**
   * A top-level field: of every collection made from now on it is kept how many documents have `true` and how many
   * `false` there, so that counting those costs the same for any number. All processes must give the same.
   */
  countBy?: string;
  /** How large an update may make documents of some collections; what is inserted may have the usual 16 MB. */
  growth?: GrowthBound;
  /** In whose turns long work is done; the event loop's own by default. One for all engines of a thread. */
  scheduler?: Scheduler;
}

export interface EngineStats extends StorageStats {
  /** Since the start; more than there may be at once tell that some were ended and replaced. */
  readerThreadsStarted: number;
}

/**
 * As `Engine.verify`, for a data file that cannot be opened: it is read without LMDB, so that no damage can end the
 * process.
 */
export function verifyDataFile(dataDir: string, options?: VerifyOptions): Promise<string[]> {
  return verifyFile(join(dataDir, DATA_FILE), options);
}

/** Repairs the data file of a directory that no process has open: see `repairFile`. */
export function repairDataFile(dataDir: string, options?: RepairOptions): Promise<RepairReport> {
  return repairFile(dataDir, options);
}

/** An opened data directory. */
export interface Engine {
  db(name: string): DataDb;
  /** The logs of changes of the collections of a database. */
  changeLogs(db: string): ChangeLogs;
  /**
   * Stores new documents, each with its `_id`, in one transaction: every reader sees all of them or none, and a refusal
   * (the driver's error) leaves none. 257 when they take more than 10,000 index entries.
   */
  insertTogether(namespace: { db: string; collection: string }, documents: readonly object[]): Promise<void>;
  /** Changes a document as its `run` decides from what is stored then. */
  transform(db: string, turn: AppTurn): Promise<AppModified>;
  /** The same for documents of one database in one transaction, in their order: all or none. */
  transformTogether(db: string, turns: readonly AppTurn[]): Promise<AppModified[]>;
  /**
   * Runs `run` in one transaction of a database and answers what it gives; what it throws is thrown, and nothing is
   * stored then. It is synchronous and without effects of its own, as it may run several times.
   */
  transaction<T>(db: string, run: (tx: Transaction) => T): Promise<T>;
  /**
   * Opens the wire listener on `127.0.0.1:port` or `unix:/path/name.sock` for the official driver and its tools. Throws
   * ListenError. It closes with the engine. `report` is told of errors behind it that are no fault of a client.
   */
  listen(address: string, report?: (error: unknown) => void): Promise<Listener>;
  /**
   * Writes a consistent copy of the data file to `path` while work goes on; it opens like the original. The copy is
   * made and verified in a separate process. Rejects with DAMAGED when it is not whole.
   */
  backup(path: string, signal?: AbortSignal): Promise<void>;
  stats(): EngineStats;
  /**
   * From now on `listen` is told of each `find`, `count` and aggregation that has looked at more than 10,000 documents,
   * when it has.
   */
  onLongRead(listen: (read: LongRead) => void): void;
  /**
   * `listen` is told, every second, that the data file or its lock file was removed or replaced (REPLACED), or that
   * LMDB has given it up after a failed write (FAILED): writes are refused then, and the process had better end.
   */
  onLost(listen: (loss: StorageError) => void): void;
  /** Why the store is only read, null when it is written as well. */
  refusal(): string | null;
  /** Ids of the processes of this machine that have the data directory open, this one included. */
  processes(): number[];
  /** Runs what makes room; on a full disk with the help of the room that is kept for it. It may run more than once. */
  useReserve<T>(work: () => Promise<T>): Promise<T>;
  /** Snapshots held at this moment by any process, the oldest first; slots of dead processes are freed before. */
  snapshots(): HeldSnapshot[];
  /**
   * Reads every page as of one moment while work goes on, and compares pages, checksums, documents, entries and counts;
   * says what is wrong in words that name collection and `_id`.
   */
  verify(options?: VerifyOptions): Promise<string[]>;
  /** Reads and commits; rejects with what stands in the way, but for a full disk. Looks once a second at most. */
  probe(): Promise<void>;
  /** Damage that any process met while it worked, since a look at every page last found nothing. */
  damage(): MetDamage[];
  /** Deletes what TTL indexes say is over now, as happens every minute anyway; returns how many documents. */
  expire(now?: Date): Promise<number>;
  close(): Promise<void>;
}

/** MongoDB's interval for TTL indexes. */
const HOUSEKEEPING_MS = 60_000;
/** A process that is killed while it reads leaves its slot, and with it a snapshot that keeps the file growing. */
const READER_CHECK_MS = 250;
/** How often is looked whether the file is still in its place; the reserve of room is filled as often. */
const PLACE_CHECK_MS = 1_000;

/**
 * Opens or creates the embedded database in `dataDir`; throws StorageError when the directory cannot be written to or
 * the file in it is foreign, cut short, or newer than this version.
 */
export function openEngine(options: EngineOptions): Engine {
  const { dataDir, durability = 'full', ignoreUndefined = false, readerThreads = 0 } = options;
  const { countBy, growth = null, scheduler } = options;
  if (scheduler) scheduleBy(scheduler);
  const storage = openStorage(dataDir, durability, { countBy, growth });
  const readers = readerThreads > 0 ? new ReaderPool({ dataDir, durability }, readerThreads) : null;
  const core: Core = {
    storage,
    cursors: new Cursors(),
    transactions: new Transactions(),
    startedAt: Date.now(),
    commandCounts: new Map(),
    readers,
  };
  const probe = new CommitProbe(storage);
  const listeners: Listener[] = [];
  let closing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let onLost: ((loss: StorageError) => void) | null = null;
  // Processes that live for one command do not stay to expire documents.
  let housekeeping = keepHouseOn({ expire: false });
  const endChecks = startChecks(storage, (loss) => onLost?.(loss));

  /** One round, and later the next: a long one is not overtaken. */
  async function keepHouseOn(chores: { expire: boolean }): Promise<void> {
    await keepHouse(core, chores);
    if (closing !== undefined) return;
    timer = setTimeout(() => {
      housekeeping = keepHouseOn({ expire: true });
    }, HOUSEKEEPING_MS).unref();
  }

  async function closeAll(): Promise<void> {
    clearTimeout(timer);
    endChecks();
    const closing = listeners.map((listener) => listener.close());
    core.cursors.closeAll();
    await readers?.close();
    // What clients of the listeners have begun, such as the building of an index, ends with the next write it asks for.
    await Promise.all([storage.queue.close(), ...closing, housekeeping]);
    await storage.close();
  }

  return {
    async listen(address, report = () => undefined) {
      const listener = await listen(core, address, report);
      listeners.push(listener);
      return listener;
    },
    backup: (path, signal) => copyDataFile(storage.environment.path, path, signal),
    stats: () => ({ ...storageStats(storage), readerThreadsStarted: readers?.started ?? 0 }),
    onLongRead(listen) {
      storage.onLongRead = listen;
      if (readers !== null) readers.onLongRead = listen;
    },
    processes: () => listProcesses(storage.environment),
    onLost(listen) {
      onLost = listen;
    },
    refusal: () => storage.environment.refusal?.message ?? null,
    useReserve: (work) => storage.reserve.use(work),
    snapshots: () => storage.snapshots.check(),
    verify: (options) => verifyStorage(storage, options),
    probe: () => probe.run(),
    damage: () => storage.damage.read(),
    expire: (now) => expireDocuments(storage, now),
    insertTogether: (namespace, documents) =>
      insertTogether(core, namespace, documents as Record<string, unknown>[], { ignoreUndefined }),
    transform: (name, turn) => transformInProcess(core, name, turn),
    transformTogether: (name, turns) => transformTogether(core, name, turns),
    transaction: (name, run) => transactInProcess(core, name, run),
    changeLogs: (name) => openChangeLogs(storage, name),
    db: (name) => openDataDb(core, name, { ignoreUndefined }),
    close: () => (closing ??= closeAll()),
  };
}

/** Errors after which this process cannot go on with the file it has open. */
const LOSSES: ReadonlySet<unknown> = new Set(['REPLACED', 'FAILED']);

/** Returns what ends them. */
function startChecks(storage: Storage, onLost: (loss: StorageError) => void): () => void {
  const { environment } = storage;
  const checkPlace = (): void => {
    checkFile(storage);
    const { refusal } = environment;
    if (refusal !== null && LOSSES.has(refusal.code)) onLost(refusal);
  };
  const timers = [
    setInterval(() => environment.store.readerCheck(), READER_CHECK_MS).unref(),
    setInterval(checkPlace, PLACE_CHECK_MS).unref(),
  ];
  const endWatch = watchLock(environment);
  return () => {
    for (const timer of timers) clearInterval(timer);
    endWatch();
  };
}

/** Checks the lock file as soon as the system reports a change of it, such as its removal, so before the next write. */
function watchLock(environment: Environment): () => void {
  try {
    const watcher = watch(lockOf(environment.path), { persistent: false }, () => {
      environment.checkPlace();
    });
    watcher.on('error', () => undefined);
    return () => {
      watcher.close();
    };
  } catch {
    // Too many files are watched: each commit looks if the last look is a while ago.
    return () => undefined;
  }
}

/** What is looked at every second; a failure is met again by the next commit. */
function checkFile({ environment, snapshots, reserve }: Storage): void {
  try {
    environment.checkPlace();
    snapshots.check();
    if (environment.refusal !== null) return;
    environment.catchUp();
    reserve.fill();
  } catch {
    // No room, for example.
  }
}

/** Closes forgotten cursors, finishes what a killed process left (half-built indexes, dropped collections), expires. */
async function keepHouse({ storage, cursors }: Core, { expire }: { expire: boolean }): Promise<void> {
  cursors.closeIdle();
  const chores = [resumeBuilds, reclaimDropped, ...(expire ? [expireDocuments] : [])];
  if (storage.environment.refusal !== null) return;
  for (const chore of chores) {
    try {
      await chore(storage);
    } catch (error) {
      storage.damage.judge(error, null);
      // Closed in between, or no space at the moment: the next round tries again.
    }
  }
}
