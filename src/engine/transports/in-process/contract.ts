import type {
  Abortable,
  AggregateOptions,
  Collection,
  CountOptions,
  Db,
  Document,
  Filter,
  FindOptions,
  Hint,
  Sort,
  SortDirection,
  WithId,
} from 'mongodb';

import type { AskedPage, FoundPage } from '../../commands/read/page-read.js';

/**
 * The part of the official driver's `FindCursor` and `AggregationCursor` that the engine offers. The driver's own
 * cursors fit it, so code written against it runs on both.
 */
export interface DataCursor<T> extends AsyncIterable<T> {
  next(): Promise<T | null>;
  tryNext(): Promise<T | null>;
  hasNext(): Promise<boolean>;
  toArray(): Promise<T[]>;
  readBufferedDocuments(): NonNullable<T>[];
  forEach(visit: (doc: T) => boolean | void): Promise<void>;
  close(): Promise<void>;
  batchSize(size: number): DataCursor<T>;
  maxTimeMS(value: number): DataCursor<T>;
  map<U>(transform: (doc: T) => U): DataCursor<U>;
  readonly closed: boolean;
}

/** The part of the driver's `FindCursor` that the engine offers. */
export interface DataFindCursor<T> extends DataCursor<T> {
  sort(sort: Sort | string, direction?: SortDirection): DataFindCursor<T>;
  limit(value: number): DataFindCursor<T>;
  skip(value: number): DataFindCursor<T>;
  project<U extends Document = Document>(value: Document): DataFindCursor<U>;
  hint(hint: Hint): DataFindCursor<T>;
  filter(filter: Document): DataFindCursor<T>;
  batchSize(size: number): DataFindCursor<T>;
  maxTimeMS(value: number): DataFindCursor<T>;
  map<U>(transform: (doc: T) => U): DataFindCursor<U>;
  count(options?: CountOptions): Promise<number>;
  explain(): Promise<Document>;
}

/** The part of the driver's `AggregationCursor` that the engine offers. */
export interface DataAggregationCursor<T> extends DataCursor<T> {
  batchSize(size: number): DataAggregationCursor<T>;
  maxTimeMS(value: number): DataAggregationCursor<T>;
  map<U>(transform: (doc: T) => U): DataAggregationCursor<U>;
  explain(): Promise<Document>;
}

/** The part of the driver's `Collection` that the engine offers; `find` with `raw: true` gives BSON buffers. */
export type DataCollection<T extends Document = Document> = Pick<
  Collection<T>,
  | 'collectionName'
  | 'dbName'
  | 'namespace'
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
  | 'dropIndexes'
  | 'indexes'
  | 'indexExists'
  | 'drop'
  | 'options'
  | 'isCapped'
> & {
  /** `batchBytes`, which a MongoDB does not know, ends a batch before it is larger. */
  find(filter?: Filter<T>, options?: FindOptions & Abortable & { batchBytes?: number }): DataFindCursor<WithId<T>>;
  aggregate<U extends Document = Document>(
    pipeline?: Document[],
    options?: AggregateOptions & Abortable,
  ): DataAggregationCursor<U>;
  listIndexes(): DataCursor<Document>;
  rename(name: string, options?: { dropTarget?: boolean }): Promise<DataCollection>;
};

/** The part of the driver's `Db` that the engine offers. */
export type DataDb = Pick<Db, 'databaseName' | 'command' | 'dropDatabase' | 'dropCollection' | 'stats'> & {
  /**
   * The BSON of the one document that a filter of plain equalities leads to by its `_id`, at once: null when there is
   * none, undefined for any other filter.
   */
  findPoint(collection: string, filter: Document): Buffer | null | undefined;
  /**
   * A page of `find` as BSON with the count of all that the filter finds, at once and of one moment; undefined where a
   * turn of the event loop is too short for it, or the documents have more bytes than asked for.
   */
  findPage(collection: string, asked: AskedPage): FoundPage | undefined;
  collection<T extends Document = Document>(name: string): DataCollection<T>;
  createCollection<T extends Document = Document>(name: string): Promise<DataCollection<T>>;
  collections(): Promise<DataCollection[]>;
  listCollections(filter?: Document, options?: { nameOnly?: boolean; batchSize?: number }): DataCursor<Document>;
  aggregate<U extends Document = Document>(pipeline?: Document[], options?: AggregateOptions): DataAggregationCursor<U>;
  admin(): Pick<ReturnType<Db['admin']>, 'ping' | 'command' | 'listDatabases' | 'buildInfo' | 'serverStatus'>;
};
