import { availableParallelism } from 'node:os';
import { access } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { CollectionOptions, IndexDescription, MongoClient, MongoClientOptions, ReadConcernLike } from 'mongodb';
import type {
  AppModified,
  AppTurn,
  AskedPage,
  ChangeLogs,
  DataCollection,
  DataDb,
  Exists,
  HeldSnapshot,
  MetDamage,
  LongRead,
  ReadFields,
  RepairReport,
  Matcher,
  FoundPage,
  Transaction,
  Transform,
  VerifyOptions,
} from '../../engine/index.js';
import type { Config } from '../../config/config.js';
import { databaseInAddress } from '../../config/setting-readers.js';
import { type AppError, conflict, invalid, unavailable } from '../../errors.js';
import { addressOf, ownTurn } from '../../scheduler.js';
import { makeDirectory, syncPath } from '../durable-files.js';
import { loadDriver } from './mongodb-driver.js';
import { replayInTransaction } from './mongodb-replay.js';
import { transformAlone, transformInLine } from './mongodb-transform.js';
import { askServer, judgeServer, type ServerJudgement } from './mongodb-server.js';
import { findOutage } from './outages.js';
import { SlowReads, type AskedRead } from './slow-reads.js';
import type { Document } from 'bson';

/** The part of the official driver's collection that stores use; the driver and the embedded engine both fit. */
export type Store<T extends Document> = DataCollection<T>;

/**
 * The one way to stored data. No code above it can tell MongoDB from the embedded engine, except by `kind` in a health
 * report.
 */
export interface Database {
  readonly kind: 'mongodb' | 'embedded';
  /** The kind of database, in a few words. */
  readonly summary: string;
  /** Advice to its operator. */
  readonly warnings: readonly string[];
  /** Options for reads that decide about access: what they find cannot be taken back by a change of primary. */
  readonly confirmedReads: { readConcern?: ReadConcernLike };
  collection<T extends Document>(name: string, options?: CollectionOptions): Store<T>;
  /**
   * Changes the document of an id (null: there is none) to what `run` makes of it, and answers it before and after. Of
   * what is read and asked nothing is old when the change is stored: others' changes come before or after it, none is
   * lost. `run` gives a copy that shares what stays, the same object to keep it, null to remove it, and gives each
   * version a later `updatedAt`; it is synchronous and without effects, as it may run several times. What it throws is
   * thrown, and nothing is stored. 409 DOCUMENT_CHANGING where others change it all the time. `isNew`: the id was made
   * just now, so that it cannot be stored already.
   */
  transform(name: string, id: unknown, run: Transform<Document>, isNew?: boolean): Promise<AppModified>;
  /** The same for documents in their order in one transaction, each seeing those before it: all or none. */
  transformTogether(turns: readonly WriteTurn[]): Promise<AppModified[]>;
  /**
   * Runs `run` in one transaction and answers what it gives. Each read sees the writes before it, and what was read is
   * not changed by others before all is stored. `run` is synchronous and without effects of its own, as it may run
   * several times. What it throws is thrown, and nothing is stored. Documents that are transformed concurrently are put
   * with a later `updatedAt`. 409 DOCUMENT_CHANGING where others change the same all the time; those of this process
   * that name the same `line`, because they write the same document, run one after the other.
   */
  transaction<T>(run: (tx: Transaction) => T, line?: string): Promise<T>;
  /**
   * The logs of the embedded engine, which it writes with the changes themselves, of any process. Of a MongoDB's
   * changes the application has to keep its own: null.
   */
  readonly changeLogs: ChangeLogs | null;
  /**
   * Builds those indexes of a stored collection that are missing, however long it takes. Throws the duplicate key error
   * of a unique one that cannot be.
   */
  createIndexes(name: string, indexes: IndexDescription[]): Promise<void>;
  /** The size of a stored collection, zero when there is none: kept by the database, not counted. */
  measure(name: string): Promise<CollectionSize>;
  /** Names of all stored collections. */
  listNames(): Promise<string[]>;
  /** Resolves when the database answers, the embedded engine after a read and a commit; throws otherwise. */
  ping(): Promise<void>;
  /**
   * The data as of one moment, for reading at leisure: the embedded engine's online copy, made in the empty directory
   * `dir`, which is the caller's to remove after closing. The copy is made and verified in a separate process: 409
   * STORE_DAMAGED when it is not whole. MongoDB is read as it is, collection by collection, and checks its own reads.
   */
  freeze(dir: string, signal: AbortSignal): Promise<Database>;
  /**
   * Lets MongoDB's tools in at `127.0.0.1:port` or `unix:/path` (no password: loopback only) until it is closed, and
   * answers their address; null for a MongoDB. 400 when it cannot be listened on. `report` gets its own errors.
   */
  listen(address: string, report: (error: unknown) => void): Promise<string | null>;
  /** Other processes of this machine that have the embedded store open, by id; none is known of a MongoDB. */
  listOtherProcesses(): number[];
  /** False if only this process has it open; always true for MongoDB. */
  isShared(): boolean;
  /** Runs what makes room, as often as it takes: on a full disk the embedded engine gives it room that it keeps. */
  useReserve<T>(work: () => Promise<T>): Promise<T>;
  /**
   * `listen` is called when this process cannot continue with the embedded database: the file is gone, or was given up.
   */
  onLost(listen: (loss: AppError) => void): void;
  /** Why the embedded store is only read, null when it is written as well. */
  refusal(): string | null;
  /** Damage that processes met in the embedded store since it was last found whole; MongoDB has its log. */
  listDamage(): MetDamage[];
  /** Snapshots of the embedded store that processes hold, the oldest first; MongoDB sees to its own. */
  listSnapshots(): HeldSnapshot[];
  /** Reads the embedded engine's whole file and describes the damage in words. MongoDB has `validate`. */
  verify(options: VerifyOptions): Promise<string[]>;
  /**
   * The stored bytes of the one document that a filter of equalities leads to by its `_id`, null when there is none;
   * undefined where that cannot be said at once, as of a MongoDB: then `findOne` says it.
   */
  findPoint: DataDb['findPoint'];
  /** A page with its total in the same way; what `find` and `countDocuments` say where it is undefined. */
  findPage: DataDb['findPage'];
  /** From now on `listen` receives reads that examined more than 10,000 documents. */
  onLongRead(listen: (read: LongRead) => void): void;
  /** Runs a read of documents. Its time is measured where nothing else says how many it may have examined. */
  timeRead<T>(read: AskedRead, run: () => Promise<T>, isOver: (answer: T) => boolean): Promise<T>;
  /** Measures of the embedded engine's file; none of a MongoDB, which has tools of its own. */
  stats(): Record<string, number>;
  close(): Promise<void>;
}

/** A write among several. `isNew`: the id was made just now, so that nothing is stored under it. */
export type WriteTurn = AppTurn & { isNew?: boolean };

export type {
  AskedPage,
  FoundPage,
  AppModified as WrittenStep,
  Exists,
  LongRead,
  Matcher,
  ReadFields,
  RepairReport,
  Transaction,
};

/**
 * Makes matchers, which try a filter on documents one by one with the answers of a find, whatever the database; loaded
 * on first use.
 */
export async function loadMatchers(): Promise<(filter: Document) => Matcher> {
  return (await import('../../engine/index.js')).openMatcher;
}

/** True for MongoDB's duplicate key error (code 11000) from either transport. */
export function isDuplicateKey(
  error: unknown,
): error is Error & { keyPattern?: Record<string, unknown>; keyValue?: Record<string, unknown> } {
  return error instanceof Error && (error as { code?: unknown }).code === 11_000;
}

/** The answer of a write; null when another document has a value that no two may have. */
export async function unlessDuplicate<T>(write: Promise<T>): Promise<T | null> {
  try {
    return await write;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return null;
  }
}

/** True for a read that its `maxTimeMS` has ended (code 50), from either transport. */
export const isTimeExceeded = (error: unknown): boolean => (error as { code?: unknown }).code === 50;

/**
 * Opens MongoDB when `MONGODB_URI` is set, else the embedded engine in the data directory. Throws `unavailable`
 * (DATABASE_UNAVAILABLE) with advice.
 */
export async function openDatabase(config: Config): Promise<Database> {
  return config.mongodbUri ? openMongodb(config.mongodbUri, config) : openEmbedded(config);
}

// A command whose database is away has to say so within ten seconds, on a slow machine too.
const SERVER_SELECTION_MS = 6_000;
/** A majority that does not confirm a write by then is not there. */
const MAJORITY_MS = 10_000;
const SILENCE_MS = 60_000;

/**
 * They stand above what MONGODB_URI says: reads from secondaries or writes that one member confirms would break
 * promises.
 */
const CLIENT_OPTIONS: MongoClientOptions = {
  appName: 'bsvc',
  writeConcern: { w: 'majority', wtimeoutMS: MAJORITY_MS },
  readPreference: 'primary',
  retryWrites: true,
  retryReads: true,
  serverSelectionTimeoutMS: SERVER_SELECTION_MS,
  connectTimeoutMS: 5_000,
  // A silent connection is noticed within this and the time to connect: commands waiting on it are tried again or
  // refused.
  heartbeatFrequencyMS: 5_000,
  waitQueueTimeoutMS: 10_000,
  ignoreUndefined: true,
};

/** Options for work that takes longer than any other command may. */
const PATIENT_OPTIONS: MongoClientOptions = {
  ...CLIENT_OPTIONS,
  socketTimeoutMS: 0,
  maxPoolSize: 2,
  maxIdleTimeMS: 30_000,
};

async function openMongodb(uri: string, config: Config): Promise<Database> {
  // The server's own limit on a read comes first, so that the error says the reason.
  const socketTimeoutMS = Math.max(SILENCE_MS, config.queryTimeoutMs + 10_000);
  const client = await connectMongodb(uri, { ...CLIENT_OPTIONS, socketTimeoutMS });
  const db = client.db(databaseInAddress(uri));
  let server: ServerJudgement;
  try {
    server = judgeServer(await askServer(client.db('admin')));
  } catch (error) {
    await client.close();
    throw findOutage(error) ?? error;
  }
  if (server.refusal) {
    await client.close();
    throw unavailable('DATABASE_UNSUITABLE', server.refusal);
  }
  let patient: Promise<MongoClient> | null = null;
  const slowReads = new SlowReads(db, async (filter) => (await loadMatchers())(filter).conditions);
  const database = {
    kind: 'mongodb',
    summary: server.summary,
    warnings: server.warnings,
    transform: (name, id, run, isNew) => transformAlone(client, db, { collection: name, id, run, isNew }),
    transformTogether: (turns) => transformInLine(client, db, turns),
    transaction: (run, line) => replayInTransaction(client, db, run, line),
    confirmedReads: { readConcern: { level: 'majority' } },
    collection: (collection, options) => db.collection(collection, options),
    async createIndexes(collection, indexes) {
      patient ??= connectMongodb(uri, PATIENT_OPTIONS).catch((error: unknown) => {
        patient = null;
        throw error;
      });
      const connected = await patient;
      await connected
        .db(databaseInAddress(uri))
        .collection(collection)
        .createIndexes(indexes, { commitQuorum: 'majority' });
    },
    measure: async (collection) => readSize(await db.command({ collStats: collection })),
    listNames: async () => (await db.listCollections({}, { nameOnly: true }).toArray()).map((entry) => entry.name),
    ping: async () => void (await db.command({ ping: 1, maxTimeMS: 5_000 })),
    freeze: () => Promise.resolve({ ...database, close: () => Promise.resolve() }),
    listen: () => Promise.resolve(null),
    changeLogs: null,
    listOtherProcesses: () => [],
    isShared: () => true,
    onLost: () => undefined,
    refusal: () => null,
    listDamage: () => [],
    listSnapshots: () => [],
    verify: () => Promise.resolve([]),
    stats: () => ({}),
    useReserve: (work) => work(),
    onLongRead: (listen) => {
      slowReads.listen = listen;
    },
    findPoint: () => undefined,
    findPage: () => undefined,
    timeRead: (read, run, isOver) => slowReads.time(read, run, isOver),
    async close() {
      slowReads.listen = null;
      await (await patient?.catch(() => null))?.close();
      await client.close();
    },
  } as Database;
  return database;
}

async function connectMongodb(uri: string, options: MongoClientOptions): Promise<MongoClient> {
  const { MongoClient } = await loadDriver();
  const client = new MongoClient(uri, options);
  try {
    return await client.connect();
  } catch (error) {
    await client.close();
    throw unavailable('DATABASE_UNAVAILABLE', explainNoConnection(error), { cause: error });
  }
}

const AUTHENTICATION_FAILED = 18;

function explainNoConnection(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: Error };
  if (cause?.name === 'MongoCompatibilityError') {
    return 'The server that MONGODB_URI names is too old: bsvc needs MongoDB 6.0 or newer.';
  }
  if (code === AUTHENTICATION_FAILED) {
    return 'MongoDB refuses the user or password of MONGODB_URI: check both, and authSource.';
  }
  return 'MongoDB cannot be reached: check MONGODB_URI and that the server is running.';
}

/** One processor is left for the event loop, the others are shared by all processes that serve. */
function readerThreads({ readerThreads, processes }: Config): number {
  return readerThreads ?? Math.max(1, Math.floor((availableParallelism() - 1) / processes));
}

/** Lists tell how many documents there are outside of the trash, and inside. */
const COUNTED_FIELD = 'isDeleted';
/** Trash, recovery and the notes of the service write these alone: they work in a document of the largest size too. */
const SERVICE_FIELDS = new Set([COUNTED_FIELD, 'deletedAt', 'updatedAt', '_bsvc']);

/** The database in an embedded store. */
const EMBEDDED_NAME = 'bsvc';

/** True if the embedded engine keeps anything in the directory. */
export async function hasStore(dataDir: string): Promise<boolean> {
  const { DATA_FILE } = await import('../../engine/index.js');
  return access(join(dataDir, DATA_FILE)).then(
    () => true,
    // One that this user may not look at is refused when it is opened.
    (error: unknown) => !['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? ''),
  );
}

async function openEmbedded(config: Config): Promise<Database> {
  const { openEngine, lookAfterKill, ListenError, DATA_FILE } = await import('../../engine/index.js');
  try {
    const { dataDir, durability } = config;
    const options = { ignoreUndefined: true, readerThreads: readerThreads(config), countBy: COUNTED_FIELD };
    const scheduler = { turn: () => ownTurn(), partyOf: addressOf };
    const growth = { prefix: 'documents_', bytes: config.documentMaxBytes, exempt: SERVICE_FIELDS };
    await lookAfterKill(dataDir);
    const isNew = !(await hasStore(dataDir));
    if (isNew) {
      await makeDirectory(dataDir).catch((cause: unknown) => {
        throw unavailable('DATABASE_UNAVAILABLE', `The data directory ${dataDir} cannot be written to.`, { cause });
      });
    }
    const engine = openEngine({ dataDir, durability, growth, scheduler, ...options });
    if (isNew) await syncPath(dataDir);
    const db = engine.db(EMBEDDED_NAME);
    let closed = false;
    return {
      kind: 'embedded',
      summary: 'the embedded engine',
      warnings: [],
      confirmedReads: {},
      collection: (name) => db.collection(name),
      transform: (name, id, run) => engine.transform(EMBEDDED_NAME, { collection: name, id, run }),
      transformTogether: (turns) => engine.transformTogether(EMBEDDED_NAME, turns),
      transaction: (run) => engine.transaction(EMBEDDED_NAME, run),
      changeLogs: engine.changeLogs(EMBEDDED_NAME),
      createIndexes: async (name, indexes) => void (await db.collection(name).createIndexes(indexes)),
      measure: async (name) => readSize(await db.command({ collStats: name })),
      listNames: async () => (await db.collections()).map((collection) => collection.collectionName),
      ping: async () => {
        if (closed) throw new Error('the database is closed');
        await engine.probe();
      },
      listDamage: () => engine.damage(),
      async freeze(dir, signal) {
        await engine.backup(join(dir, DATA_FILE), signal).catch((error: unknown) => {
          throw describeCopyError(error);
        });
        return openEmbedded({ ...config, dataDir: dir, engineListen: null, readerThreads: 0 });
      },
      async listen(address, report) {
        try {
          if (address.startsWith('unix:')) await makeDirectory(dirname(address.slice('unix:'.length)));
          return (await engine.listen(address, report)).uri;
        } catch (error) {
          if (!(error instanceof ListenError)) throw error;
          throw invalid('LISTEN_FAILED', `BSVC_ENGINE_LISTEN cannot be opened: ${error.message}`, { cause: error });
        }
      },
      listOtherProcesses: () => engine.processes().filter((pid) => pid !== process.pid),
      isShared: () => engine.processes().some((pid) => pid !== process.pid),
      useReserve: (work) => engine.useReserve(work),
      listSnapshots: () => engine.snapshots(),
      onLost: (listen) => {
        engine.onLost(({ code, message }) => {
          listen(unavailable(code === 'FAILED' ? 'STORE_FAILED' : 'STORE_REPLACED', message));
        });
      },
      refusal: () => engine.refusal(),
      verify: (options) => engine.verify(options),
      stats: () => ({ ...engine.stats() }),
      onLongRead: (listen) => engine.onLongRead(listen),
      findPoint: (name, filter) => db.findPoint(name, filter),
      findPage: (name, asked) => db.findPage(name, asked),
      timeRead: (_read, run) => run(),
      close: () => {
        closed = true;
        return engine.close();
      },
    };
  } catch (error) {
    throw describeStorageError(error);
  }
}

/** Only shown to operators, who need the path. */
function describeStorageError(error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== 'StorageError') return error;
  return unavailable('DATABASE_UNAVAILABLE', error.message, { cause: error });
}

/** A damaged store never becomes a copy that looks whole. */
function describeCopyError(error: unknown): unknown {
  if ((error as { code?: unknown }).code !== 'DAMAGED') return describeStorageError(error);
  return conflict(
    'STORE_DAMAGED',
    `The store is damaged, so it was not copied: ${(error as Error).message} "bsvc doctor --deep" lists all damage, "bsvc doctor --repair" saves what is whole.`,
    { cause: error },
  );
}

/** Recovers intact data of an embedded database that is not open: see `repairFile`. Throws DATABASE_UNAVAILABLE. */
export async function repairStore(
  { dataDir }: Config,
  options: {
    dryRun: boolean;
    onProgress: (step: string, done: number, all: number | null) => void;
    signal: AbortSignal;
  },
): Promise<RepairReport> {
  const { repairDataFile } = await import('../../engine/index.js');
  try {
    return await repairDataFile(dataDir, options);
  } catch (error) {
    throw describeStorageError(error);
  }
}

/** The damage in an embedded engine's file that can no longer be opened. */
export async function verifyUnopened({ dataDir }: Config, options: VerifyOptions): Promise<string[]> {
  const { verifyDataFile } = await import('../../engine/index.js');
  return verifyDataFile(dataDir, options);
}

interface CollectionSize {
  documents: number;
  bytes: number;
}

/** Reads the answer to `collStats`, in which figures are absent for a collection that does not exist. */
function readSize({ count, size }: Document): CollectionSize {
  return { documents: Number(count ?? 0), bytes: Number(size ?? 0) };
}

/** A condition for texts that hold this one, in either case of letters. No index serves it. */
export function holding(text: string): { $regex: string; $options: 'i' } {
  return { $regex: text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), $options: 'i' };
}

/** The way to the stored records of one kind: `sessionStore(app).findOne(…)`. */
export function storeOf<T extends Document>(name: string): (deps: { readonly db: Database }) => Store<T> {
  return ({ db }) => db.collection<T>(name);
}
