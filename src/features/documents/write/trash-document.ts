import type { App } from '../../../app.js';
import { changeDocumentRecord, removeDocumentRecord } from '../store/document-store.js';
import { visibleDocuments } from '../store/document.js';
import { nextVersion, type ExpectedVersion } from './if-match.js';
import { requireDocumentId, writeInState, type WriteTarget } from './write-target.js';

/**
 * Moves an active document to the trash (rest-api.md 3.1). 404 when there is none, one already trashed included; 403
 * OWNER_MISMATCH for another user's, 412 CHANGED_MEANWHILE for another version than the expected one.
 */
export async function trashDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  expected: ExpectedVersion = null,
): Promise<string> {
  const id = requireDocumentId(idText);
  const now = nextVersion(app.clock.now(), expected);
  const set = { isDeleted: true, deletedAt: now, updatedAt: now };
  await writeInState(app, place, { _id: id, isDeleted: false }, { action: 'delete', expected }, (filter) =>
    changeDocumentRecord(app, place.collection, filter, { action: 'delete', set, isOwn: true }),
  );
  return id.toHexString();
}

/** Removes a document at once and for good, from the trash too. Refuses as trashDocument does. */
export async function deleteDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  expected: ExpectedVersion = null,
): Promise<string> {
  const id = requireDocumentId(idText);
  await writeInState(app, place, { _id: id, ...visibleDocuments(true) }, { action: 'delete', expected }, (filter) =>
    removeDocumentRecord(app, place.collection, filter),
  );
  return id.toHexString();
}
