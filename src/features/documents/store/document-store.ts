import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, invalid, tooLarge, type AppError } from '../../../errors.js';
import { takeTurns } from '../../../own-turn.js';
import { isDuplicateKey, type Store } from '../../../platform/database/database.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { PENDING, REMOVED } from '../../collections/indexes/document-indexes.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { BATCH_NUMBER } from '../../collections/indexes/insert-series.js';
import { tellFollowers } from '../../changes/change-log.js';
import { queueEvents, relayLater, relayStoredLater } from '../../webhooks/outbox/queue-events.js';
import { OUTBOX_SINCE, outboxOperators, withOutbox, type OutboxPaths } from '../../webhooks/outbox/outbox-field.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument, SystemFields } from './document.js';
import { matchShown } from './shown-documents.js';
import { PARALLEL_ARRAYS, PARALLEL_ARRAYS_TEXT, parallelArrays } from './parallel-arrays.js';

type Filter = Record<string, unknown>;
type Database = Pick<App, 'db'>;

/**
 * The documents of a collection, for reading. All their writes are in this file, so that everything that must be
 * written with a change can be added here (decision 101).
 */
export function documentStore(app: Database, collection: Collection): Store<StoredDocument> {
  return app.db.collection<StoredDocument>(documentsName(collection));
}

/** The same for updates by path: the type of a document whose fields are its client's cannot name them. */
function documentsByPath(app: Database, collection: Collection): Store<SystemFields & OutboxPaths> {
  return app.db.collection(documentsName(collection));
}

/** Stores a new document; 409 DUPLICATE_VALUE when a unique value is taken, 400 when an index cannot hold it. */
export async function insertDocumentRecord(app: App, collection: Collection, document: StoredDocument): Promise<void> {
  const stored = withOutbox(document, await queueEvents(app, collection, 'insert'));
  try {
    await documentStore(app, collection).insertOne(stored);
  } catch (error) {
    throw translate(error);
  }
  tellFollowers(app, collection);
  relayLater(app, collection, [stored]);
}

/** Stores those documents that can be stored, each for itself; answers for the others, by position, why not. */
export async function insertEachRecord(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<Map<number, string>> {
  const stored = await withInsertEvents(app, collection, documents);
  const refused = await insertEach(app, collection, stored);
  tellFollowers(app, collection);
  relayLater(
    app,
    collection,
    stored.filter((_, at) => !refused.has(at)),
  );
  return refused;
}

async function insertEach(
  app: Database,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<Map<number, string>> {
  try {
    await documentStore(app, collection).insertMany(documents, { ordered: false });
    return new Map();
  } catch (error) {
    const { writeErrors = [] } = error as { writeErrors?: WriteRefusal | WriteRefusal[] };
    const refusals = [writeErrors].flat();
    if (refusals.length === 0 || refusals.some(({ code }) => !EXPLAINED.has(code))) {
      throw error;
    }
    return new Map(refusals.map((refusal) => [refusal.index, explainRefusal(refusal)]));
  }
}

async function withInsertEvents(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<StoredDocument[]> {
  const stored: StoredDocument[] = [];
  const turn = takeTurns();
  for (const document of documents) {
    await turn();
    stored.push(withOutbox(document, await queueEvents(app, collection, 'insert')));
  }
  return stored;
}

interface WriteRefusal {
  index: number;
  code: number;
  errmsg?: string;
}

function explainRefusal({ code, errmsg = '' }: WriteRefusal): string {
  if (code === PARALLEL_ARRAYS) return PARALLEL_ARRAYS_TEXT;
  if (code === NO_PLACE) return NO_PLACE_TEXT;
  if (code === TRANSACTION_TOO_LARGE) return TOO_MANY_ENTRIES_TEXT;
  const field = duplicateField(errmsg);
  return field === '_id' ? 'there is a document with this _id already' : `${field} must be unique: the value is taken`;
}

/**
 * Stores all of the documents or none, at once for every reader: only where the database can. 413 when they are too
 * much for that.
 */
export async function insertRecordsTogether(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<void> {
  const stored = await withInsertEvents(app, collection, documents);
  try {
    await app.db.insertTogether!(documentsName(collection), stored);
  } catch (error) {
    if ((error as { code?: unknown }).code === TRANSACTION_TOO_LARGE) {
      const text = 'The documents have too many index entries to be stored all at once: send fewer in one request';
      throw tooLarge('BATCH_TOO_LARGE', text);
    }
    throw translate(error);
  }
  tellFollowers(app, collection);
  relayLater(app, collection, stored);
}

/**
 * Stores documents of a batch that is hidden; their unique values are taken from now on. After an error some of them
 * may be there.
 */
export async function insertHiddenRecords(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
  batchNumber: number,
): Promise<void> {
  const stored = (await withInsertEvents(app, collection, documents)).map((document) => ({
    ...document,
    [HIDDEN_FIELD]: { ...(document[HIDDEN_FIELD] as object | undefined), batch: batchNumber },
  }));
  try {
    await documentStore(app, collection).insertMany(stored, { ordered: true });
  } catch (error) {
    throw translate(error);
  }
}

/** Removes the documents of a batch that never came to stand. */
export async function removeHiddenRecords(
  app: Database,
  collection: Collection,
  { ids, number }: { ids: readonly ObjectId[]; number: number },
): Promise<void> {
  await documentStore(app, collection).deleteMany({ _id: { $in: [...ids] }, [BATCH_NUMBER]: number });
}

/** Has the events of documents relayed that were stored hidden and are shown now. */
export async function relayInserted(app: App, collection: Collection, ids: readonly ObjectId[]): Promise<void> {
  tellFollowers(app, collection);
  if (await queueEvents(app, collection, 'insert')) relayStoredLater(app, collection, ids);
}

/**
 * Makes pending documents active. Harmless to repeat; 400 when an index that was made meanwhile cannot hold one of
 * them.
 */
export async function publishPendingRecords(app: App, collection: Collection, ids: readonly ObjectId[]): Promise<void> {
  const pending = { _id: { $in: [...ids] }, isDeleted: PENDING } as const;
  try {
    await documentStore(app, collection).updateMany(pending, { $set: { isDeleted: false } });
  } catch (error) {
    throw translate(error);
  }
  tellFollowers(app, collection);
  if (await queueEvents(app, collection, 'insert')) relayStoredLater(app, collection, ids);
}

/** Removes those of the documents that are still pending. */
export async function removePendingRecords(
  app: Database,
  collection: Collection,
  ids: readonly ObjectId[],
): Promise<void> {
  await documentStore(app, collection).deleteMany({ _id: { $in: [...ids] }, isDeleted: PENDING });
}

/**
 * Changes the one document that matches, in one atomic write, and answers it as it is afterwards; null when none
 * matches. 409 DUPLICATE_VALUE when a unique value is taken; PathBlocked when a dotted path leads through something
 * that is not an object.
 */
export async function changeDocumentRecord(
  app: App,
  collection: Collection,
  filter: Filter,
  change: { action: Action; set: Record<string, unknown>; unset?: readonly string[] },
): Promise<StoredDocument | null> {
  const { action, set, unset = [] } = change;
  const update = {
    ...outboxOperators(await queueEvents(app, collection, action)),
    $set: set,
    ...(unset.length > 0 && { $unset: Object.fromEntries(unset.map((path) => [path, '' as const])) }),
  };
  try {
    const changed = await matchShown(
      app,
      collection,
      async (shown) =>
        (await documentsByPath(app, collection).findOneAndUpdate({ ...filter, ...shown }, update, {
          returnDocument: 'after',
        })) as StoredDocument | null,
    );
    if (changed) {
      tellFollowers(app, collection);
      relayLater(app, collection, [changed]);
    }
    return changed;
  } catch (error) {
    throw translate(error);
  }
}

/**
 * Removes the one document that matches for good and answers it; null when none matches. With an event to tell it
 * leaves an invisible rest until that is relayed.
 */
export async function removeDocumentRecord(
  app: App,
  collection: Collection,
  filter: Filter,
): Promise<StoredDocument | null> {
  const entry = await queueEvents(app, collection, 'delete');
  const remove = async (shown: Filter): Promise<StoredDocument | null> => {
    const wanted = { ...filter, ...shown };
    if (!entry) return await documentStore(app, collection).findOneAndDelete(wanted);
    const set = { isDeleted: REMOVED, deletedAt: entry.at, updatedAt: entry.at };
    return await documentsByPath(app, collection).findOneAndUpdate(
      wanted,
      { ...outboxOperators(entry), $set: set },
      { returnDocument: 'after' },
    );
  };
  const removed = await app.db.useReserve(() => matchShown(app, collection, remove));
  if (removed) tellFollowers(app, collection);
  if (entry && removed) relayLater(app, collection, [removed]);
  return removed;
}

/**
 * Removes at most `limit` of the documents that were trashed until `until`, and returns their number. One that is
 * recovered meanwhile stays, and one whose events wait in it until they are relayed.
 */
export async function removeTrashedRecords(
  app: Database,
  collection: Collection,
  until: Date,
  limit: number,
): Promise<number> {
  const trashed = { isDeleted: true, deletedAt: { $lte: until }, [OUTBOX_SINCE]: null };
  const store = documentStore(app, collection);
  const found = await store.find(trashed).project<{ _id: ObjectId }>({ _id: 1 }).limit(limit).toArray();
  if (found.length === 0) return 0;
  const ids = found.map(({ _id }) => _id);
  const removed = await app.db.useReserve(() => store.deleteMany({ _id: { $in: ids }, ...trashed }));
  return removed.deletedCount;
}

/** A dotted path of an update leads through a stored value that is not an object. */
export class PathBlocked extends Error {}

const DUPLICATE_KEY = 11_000;
const PATH_NOT_VIABLE = 28;
/** A field with an index of places holds something else. */
const NO_PLACE = 16_755;
const NO_PLACE_TEXT =
  'A field with an index of places holds something else than {"type":"Point","coordinates":[longitude,latitude]} or [longitude,latitude]';
/** The index entries are too many for one transaction. */
const TRANSACTION_TOO_LARGE = 257;
const TOO_MANY_ENTRIES_TEXT =
  'the document would have more than 10000 index entries: one for each item of an indexed array';
/** Errors by which a write of several documents may refuse one of them. */
const EXPLAINED: ReadonlySet<number> = new Set([DUPLICATE_KEY, PARALLEL_ARRAYS, NO_PLACE, TRANSACTION_TOO_LARGE]);
const TOO_LARGE = new Set([10_334, 17_419, 17_420]);

function translate(error: unknown): unknown {
  if (isDuplicateKey(error)) return duplicateValue(error);
  const { code } = error as { code?: unknown };
  if (code === PARALLEL_ARRAYS) return parallelArrays();
  if (code === NO_PLACE) return invalid('VALIDATION_FAILED', `Validation failed: ${NO_PLACE_TEXT}`);
  if (code === PATH_NOT_VIABLE) return new PathBlocked('a dotted path is blocked', { cause: error });
  if (code === TRANSACTION_TOO_LARGE) return tooLarge('DOCUMENT_TOO_LARGE', `Too large: ${TOO_MANY_ENTRIES_TEXT}`);
  if (TOO_LARGE.has(code as number)) {
    return tooLarge('DOCUMENT_TOO_LARGE', 'The document would become larger than the 16 MB a document may have');
  }
  return error;
}

function duplicateValue(error: Error & { keyPattern?: Record<string, unknown> }): AppError {
  const field = Object.keys(error.keyPattern ?? {})[0] ?? duplicateField(error.message);
  const message = `Duplicate value: another document has the same ${field}`;
  return conflict('DUPLICATE_VALUE', message, { details: [{ field, rule: 'unique', message }], cause: error });
}

/**
 * The field in the text of a duplicate key error, which is all that errors of bulk writes carry: our unique indexes are
 * named after their field.
 */
function duplicateField(text: string): string {
  const index = /index: (\S+) dup key/.exec(text)?.[1] ?? '';
  return index.startsWith('unique_') ? index.slice('unique_'.length) : '_id';
}
