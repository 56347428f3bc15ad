import type { ObjectId } from 'bson';
import type { PENDING } from '../collections/document-indexes.js';

/**
 * A document as stored: the client's fields beside the system fields (rest-api.md 2.5).
 *
 * | isDeleted | deletedAt | state |
 * |---|---|---|
 * | false | null | active |
 * | true | date | trashed at that moment |
 * | 'pending' | null | part of a bulk insert that is not published yet: nobody may see it, but its unique values count |
 */
export interface StoredDocument {
  _id: ObjectId;
  isDeleted: boolean | typeof PENDING;
  deletedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  [field: string]: unknown;
}

/** Every read of documents ANDs this in: active ones, or with `includeDeleted` trashed ones too, never pending ones. */
export function visibleDocuments(includeDeleted = false): Record<string, unknown> {
  return { isDeleted: includeDeleted ? { $in: [false, true] } : false };
}
