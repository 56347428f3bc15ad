import type { Collection, CollectionOptions, Document, FindCursor, AggregationCursor } from 'mongodb';
import type { Config } from '../config.js';
import { unavailable } from '../errors.js';

/** What a store may do with a cursor: the driver's own methods, nothing of ours. */
export type Cursor<T> = Pick<
  FindCursor<T>,
  | 'sort'
  | 'limit'
  | 'skip'
  | 'project'
  | 'hint'
  | 'maxTimeMS'
  | 'batchSize'
  | 'toArray'
  | 'next'
  | 'hasNext'
  | 'close'
  | typeof Symbol.asyncIterator
>;

export type AggregateCursor<T> = Pick<
  AggregationCursor<T>,
  'toArray' | 'next' | 'hasNext' | 'close' | 'maxTimeMS' | 'batchSize' | typeof Symbol.asyncIterator
>;

/** The part of the official driver's collection that stores use; the driver and the embedded engine both fit. */
export type Store<T extends Document> = Pick<
  Collection<T>,
  | 'collectionName'
  | 'findOne'
  | 'insertOne'
  | 'insertMany'
  | 'updateOne'
  | 'updateMany'
  | 'replaceOne'
  | 'deleteOne'
  | 'deleteMany'
  | 'findOneAndUpdate'
  | 'findOneAndReplace'
  | 'findOneAndDelete'
  | 'bulkWrite'
  | 'countDocuments'
  | 'estimatedDocumentCount'
  | 'distinct'
  | 'createIndex'
  | 'createIndexes'
  | 'dropIndex'
  | 'indexes'
  | 'drop'
> & {
  find(...args: Parameters<Collection<T>['find']>): Cursor<T>;
  aggregate<R extends Document = Document>(...args: Parameters<Collection<T>['aggregate']>): AggregateCursor<R>;
};

/** The one door to stored data. Nobody above it can tell MongoDB from the embedded engine, except by `kind` in a health report. */
export interface Database {
  readonly kind: 'mongodb' | 'embedded';
  collection<T extends Document>(name: string, options?: CollectionOptions): Store<T>;
  /** Names of all stored collections. */
  listNames(): Promise<string[]>;
  /** Resolves when the database answers, throws otherwise. */
  ping(): Promise<void>;
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

const SERVER_SELECTION_MS = 8_000;

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
  return {
    kind: 'mongodb',
    collection: (collection, options) => db.collection(collection, options),
    listNames: async () => (await db.listCollections({}, { nameOnly: true }).toArray()).map((entry) => entry.name),
    ping: async () => void (await db.command({ ping: 1 })),
    close: () => client.close(),
  } as Database;
}

async function openEmbedded(config: Config): Promise<Database> {
  const { openEngine, StorageError } = await import('../engine/index.js');
  try {
    const { dataDir, durability } = config;
    const engine = openEngine({ dataDir, durability, ignoreUndefined: true });
    const db = engine.db(config.mongodbName);
    return {
      kind: 'embedded',
      // The engine's cursors offer exactly what `Cursor` names; their types say so, the driver's say more.
      collection: <T extends Document>(name: string) => db.collection<T>(name) as unknown as Store<T>,
      listNames: async () => (await db.collections()).map((collection) => collection.collectionName),
      ping: async () => void (await db.command({ ping: 1 })),
      close: () => engine.close(),
    };
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    throw unavailable('DATABASE_UNAVAILABLE', error.message, { cause: error });
  }
}
