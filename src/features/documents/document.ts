import type { ObjectId } from 'bson';

/**
 * A document as stored: the client's fields beside the system fields (rest-api.md 2.5).
 *
 * | isDeleted | deletedAt | state |
 * |---|---|---|
 * | false | null | active |
 * | true | date | trashed at that moment |
 * | false | date | pending: part of a bulk insert that is not published yet; nobody may see it, but its unique values count |
 */
export interface StoredDocument {
  _id: ObjectId;
  isDeleted: boolean;
  deletedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  [field: string]: unknown;
}

/** Every read of documents ANDs this in: active ones, or with `includeDeleted` trashed ones too, never pending ones. */
export function visibleDocuments(includeDeleted = false): Record<string, unknown> {
  return includeDeleted ? { $or: [{ isDeleted: true }, { deletedAt: null }] } : { isDeleted: false, deletedAt: null };
}
