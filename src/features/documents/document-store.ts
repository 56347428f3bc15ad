import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, tooLarge, type AppError } from '../../errors.js';
import { isDuplicateKey, type Store } from '../../platform/database.js';
import { documentsName, type Collection } from '../collections/collection.js';
import { PENDING } from '../collections/document-indexes.js';
import type { StoredDocument } from './document.js';

type Filter = Record<string, unknown>;
type Database = Pick<App, 'db'>;

/** The documents of a collection, for reading. What writes them is in this file only, so that whatever must be written with a change can be added here. */
export function documentStore(app: Database, collection: Collection): Store<StoredDocument> {
  return app.db.collection<StoredDocument>(documentsName(collection));
}

/** Stores a new document; 409 DUPLICATE_VALUE when a unique value is taken. */
export async function insertDocumentRecord(
  app: Database,
  collection: Collection,
  document: StoredDocument,
): Promise<void> {
  try {
    await documentStore(app, collection).insertOne(document);
  } catch (error) {
    throw translate(error);
  }
}

/** Stores those documents that can be stored, each for itself; answers for the others, by position, why not. */
export async function insertEachRecord(
  app: Database,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<Map<number, string>> {
  try {
    await documentStore(app, collection).insertMany(documents, { ordered: false });
    return new Map();
  } catch (error) {
    const refusals = (error as { writeErrors?: WriteRefusal | WriteRefusal[] }).writeErrors;
    if (!isDuplicateKey(error) || refusals === undefined) throw error;
    return new Map([refusals].flat().map((refusal) => [refusal.index, explainRefusal(refusal)]));
  }
}

interface WriteRefusal {
  index: number;
  code: number;
  errmsg?: string;
}

function explainRefusal({ code, errmsg = '' }: WriteRefusal): string {
  if (code !== DUPLICATE_KEY) return 'the database refused it';
  const field = duplicateField(errmsg);
  return field === '_id' ? 'there is a document with this _id already' : `${field} must be unique: the value is taken`;
}

/** Stores documents that nobody can see yet; their unique values are taken from now on. On 409 some of them may be there: remove them by id. */
export async function insertPendingRecords(
  app: Database,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<void> {
  try {
    await documentStore(app, collection).insertMany(
      documents.map((document) => ({ ...document, isDeleted: PENDING })),
      { ordered: true },
    );
  } catch (error) {
    throw translate(error);
  }
}

/** Makes pending documents active. Harmless to repeat. */
export async function publishPendingRecords(
  app: Database,
  collection: Collection,
  ids: readonly ObjectId[],
): Promise<void> {
  await documentStore(app, collection).updateMany(
    { _id: { $in: [...ids] }, isDeleted: PENDING },
    { $set: { isDeleted: false } },
  );
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
 * Changes the one document that matches, in one atomic write, and answers it as it is afterwards; null when none matches.
 * 409 DUPLICATE_VALUE when a unique value is taken; PathBlocked when a dotted path leads through something that is not an object.
 */
export async function changeDocumentRecord(
  app: Database,
  collection: Collection,
  filter: Filter,
  change: { set: Record<string, unknown>; unset?: readonly string[] },
): Promise<StoredDocument | null> {
  const { set, unset = [] } = change;
  const update = {
    $set: set,
    ...(unset.length > 0 && { $unset: Object.fromEntries(unset.map((path) => [path, '' as const])) }),
  };
  try {
    return (await documentStore(app, collection).findOneAndUpdate(filter, update, {
      returnDocument: 'after',
    })) as StoredDocument | null;
  } catch (error) {
    throw translate(error);
  }
}

/** Removes the one document that matches for good and answers it; null when none matches. */
export async function removeDocumentRecord(
  app: Database,
  collection: Collection,
  filter: Filter,
): Promise<StoredDocument | null> {
  return (await documentStore(app, collection).findOneAndDelete(filter)) as StoredDocument | null;
}

/** Removes at most `limit` of the documents that were trashed until `until`, and tells how many. One that is recovered meanwhile stays. */
export async function removeTrashedRecords(
  app: Database,
  collection: Collection,
  until: Date,
  limit: number,
): Promise<number> {
  const trashed = { isDeleted: true, deletedAt: { $lte: until } };
  const store = documentStore(app, collection);
  const found = await store.find(trashed).project({ _id: 1 }).limit(limit).toArray();
  if (found.length === 0) return 0;
  const removed = await store.deleteMany({ _id: { $in: found.map(({ _id }) => _id) }, ...trashed });
  return removed.deletedCount;
}

/** A dotted path of an update leads through a stored value that is not an object. */
export class PathBlocked extends Error {}

const DUPLICATE_KEY = 11_000;
const PATH_NOT_VIABLE = 28;
const TOO_LARGE = new Set([10_334, 17_419, 17_420]);

function translate(error: unknown): unknown {
  if (isDuplicateKey(error)) return duplicateValue(error);
  const { code } = error as { code?: unknown };
  if (code === PATH_NOT_VIABLE) return new PathBlocked('a dotted path is blocked', { cause: error });
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

/** The field in the text of a duplicate key error, which is all that errors of bulk writes carry: our unique indexes are named after their field. */
function duplicateField(text: string): string {
  const index = /index: (\S+) dup key/.exec(text)?.[1] ?? '';
  return index.startsWith('unique_') ? index.slice('unique_'.length) : '_id';
}
