import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { DAY_MS, versionTime } from '../../../platform/time/clock.js';
import type { Collection } from '../../collections/collection.js';
import { foldChanged } from '../../collections/fields/nocase.js';

/** The fields that every document has beside its client's. */
export interface SystemFields {
  _id: ObjectId;
  isDeleted: boolean;
  deletedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

/**
 * A document as stored: the client's fields beside the system fields (rest-api.md 2.5).
 *
 * | isDeleted | deletedAt | state |
 * |---|---|---|
 * | false | null | active |
 * | true | date | trashed at that moment |
 */
export interface StoredDocument extends SystemFields {
  [field: string]: unknown;
}

/** The filter that every read of documents includes: active ones, or with `includeDeleted` trashed ones too. */
export function visibleDocuments(includeDeleted = false): Record<string, unknown> {
  return { isDeleted: includeDeleted ? { $in: [false, true] } : false };
}

/** Documents trashed until this moment can no longer be recovered (rest-api.md 3.1). */
export function trashCutoff(app: Pick<App, 'clock' | 'config'>): Date {
  return new Date(app.clock.now() - app.config.trashDays * DAY_MS);
}

/** The changed document, a copy that is given away, as it is stored: with a later time. */
export function nextVersion(
  { clock }: App,
  collection: Collection,
  stored: StoredDocument,
  changed: StoredDocument,
): StoredDocument {
  const next = changed === stored ? { ...stored } : changed;
  next.updatedAt = versionTime(stored, clock.now());
  return foldChanged(collection, stored, next);
}
