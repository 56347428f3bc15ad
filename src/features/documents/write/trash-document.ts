import type { App } from '../../../app.js';
import { changeDocumentRecord, removeDocumentRecord } from '../store/document-store.js';
import { visibleDocuments } from '../store/document.js';
import { nextVersion, requireVersion, versionFilter, type ExpectedVersion } from './if-match.js';
import { explainMiss, ownedBy, requireDocumentId, writeOrExplain, type WriteTarget } from './write-target.js';

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
  const active = { _id: id, isDeleted: false };
  const set = { isDeleted: true, deletedAt: now, updatedAt: now };
  const filter = { ...active, ...versionFilter(expected), ...ownedBy(place.writer) };
  await writeOrExplain(
    () => changeDocumentRecord(app, place.collection, filter, { action: 'delete', set }),
    async () => requireVersion(await explainMiss(app, place, active), expected),
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
  const stored = { _id: id, ...visibleDocuments(true) };
  const filter = { ...stored, ...versionFilter(expected), ...ownedBy(place.writer) };
  await writeOrExplain(
    () => removeDocumentRecord(app, place.collection, filter),
    async () => requireVersion(await explainMiss(app, place, stored), expected),
  );
  return id.toHexString();
}
