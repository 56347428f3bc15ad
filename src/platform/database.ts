import { join } from 'node:path';
import type { CollectionOptions, Document } from 'mongodb';
import type { DataCollection } from '../engine/index.js';
import type { Config } from '../config.js';
import { invalid, unavailable, type AppError } from '../errors.js';

/** The part of the official driver's collection that stores use; the driver and the embedded engine both fit. */
export type Store<T extends Document> = DataCollection<T>;

/** The one door to stored data. Nobody above it can tell MongoDB from the embedded engine, except by `kind` in a health report. */
export interface Database {
  readonly kind: 'mongodb' | 'embedded';
  collection<T extends Document>(name: string, options?: CollectionOptions): Store<T>;
  /** Names of all stored collections. */
  listNames(): Promise<string[]>;
  /** Resolves when the database answers, throws otherwise. */
  ping(): Promise<void>;
  /**
   * The data as of one moment, for reading at leisure: the embedded engine's online copy, made in the empty directory `dir`, which is the
   * caller's to remove after closing. MongoDB is read as it is, collection by collection.
   */
  freeze(dir: string): Promise<Database>;
  /**
   * Lets MongoDB's tools in at `127.0.0.1:port` or `unix:/path` (no password: loopback only) until the database is closed, and answers the address
   * to give them. 400 when it cannot be listened on; null for a MongoDB, which has its own door.
   */
  openDoor(address: string): Promise<string | null>;
  /** Other processes of this machine that have the embedded store open, by id; none is known of a MongoDB. */
  listOtherProcesses(): number[];
  /** Measures of the embedded engine's file; MongoDB has tools of its own. */
  stats?(): Record<string, number>;
  close(): Promise<void>;
}

/** True for MongoDB's duplicate key error (code 11000) from either door. */
export function isDuplicateKey(
  error: unknown,
): error is Error & { keyPattern?: Record<string, unknown>; keyValue?: Record<string, unknown> } {
  return error instanceof Error && (error as { code?: unknown }).code === 11_000;
}

/** Opens MongoDB when `MONGODB_URI` is set, else the embedded engine in the data directory. Throws `unavailable` (DATABASE_UNAVAILABLE) with advice. */
export async function openDatabase(config: Config): Promise<Database> {
  return config.mongodbUri ? openMongodb(config.mongodbUri, config.mongodbName) : openEmbedded(config);
}

// A command whose database is away has to say so within ten seconds, on a slow machine too.
const SERVER_SELECTION_MS = 6_000;

async function openMongodb(uri: string, name: string): Promise<Database> {
  const { MongoClient } = await import('mongodb');
  const client = new MongoClient(uri, {
    appName: 'bsvc',
    writeConcern: { w: 'majority' },
    serverSelectionTimeoutMS: SERVER_SELECTION_MS,
    connectTimeoutMS: 5_000,
    socketTimeoutMS: 60_000,
    waitQueueTimeoutMS: 10_000,
    ignoreUndefined: true,
  });
  try {
    await client.connect();
  } catch (error) {
    await client.close();
    throw unavailable(
      'DATABASE_UNAVAILABLE',
      'MongoDB cannot be reached: check MONGODB_URI and that the server is running.',
      {
        cause: error,
      },
    );
  }
  const db = client.db(name);
  const database = {
    kind: 'mongodb',
    collection: (collection, options) => db.collection(collection, options),
    listNames: async () => (await db.listCollections({}, { nameOnly: true }).toArray()).map((entry) => entry.name),
    ping: async () => void (await db.command({ ping: 1 })),
    freeze: () => Promise.resolve({ ...database, close: () => Promise.resolve() }),
    openDoor: () => Promise.resolve(null),
    listOtherProcesses: () => [],
    close: () => client.close(),
  } as Database;
  return database;
}

async function openEmbedded(config: Config): Promise<Database> {
  const { openEngine, ListenError, DATA_FILE } = await import('../engine/index.js');
  try {
    const { dataDir, durability } = config;
    const engine = openEngine({ dataDir, durability, ignoreUndefined: true });
    const db = engine.db(config.mongodbName);
    let closed = false;
    return {
      kind: 'embedded',
      collection: (name) => db.collection(name),
      listNames: async () => (await db.collections()).map((collection) => collection.collectionName),
      ping: async () => {
        if (closed) throw new Error('the database is closed');
        await db.command({ ping: 1 });
      },
      async freeze(dir) {
        await engine.backup(join(dir, DATA_FILE));
        return openEmbedded({ ...config, dataDir: dir, engineListen: null });
      },
      async openDoor(address) {
        try {
          return (await engine.listen(address)).uri;
        } catch (error) {
          if (!(error instanceof ListenError)) throw error;
          throw invalid('DOOR_CLOSED', `BSVC_ENGINE_LISTEN cannot be opened: ${error.message}`, { cause: error });
        }
      },
      listOtherProcesses: () => engine.processes().filter((pid) => pid !== process.pid),
      stats: () => ({ ...engine.stats() }),
      close: () => {
        closed = true;
        return engine.close();
      },
    };
  } catch (error) {
    throw findOutage(error) ?? error;
  }
}

/** The error to answer when the database itself cannot do its work just now (away, disk full, unusable file); null for any other error. */
export function findOutage(error: unknown): AppError | null {
  if (!(error instanceof Error)) return null;
  if (error.name === 'StorageError')
    return unavailable('DATABASE_UNAVAILABLE', error.message, { cause: error, retryAfterSeconds: 5 });
  if (OUTAGE_NAMES.has(error.name)) {
    return unavailable('DATABASE_UNAVAILABLE', 'The database cannot be reached just now', {
      cause: error,
      retryAfterSeconds: 5,
    });
  }
  return null;
}

/** Errors of the official driver that mean that no answer came. */
const OUTAGE_NAMES = new Set([
  'MongoServerSelectionError',
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoWaitQueueTimeoutError',
  'MongoNotConnectedError',
  'MongoTopologyClosedError',
  'MongoPoolClosedError',
  'MongoPoolClearedError',
]);
