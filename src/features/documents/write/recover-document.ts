import type { App } from '../../../app.js';
import { missing } from '../../../errors.js';
import { changeDocumentRecord } from '../store/document-store.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { presentWritten } from './guard-fields.js';
import { nextVersion } from '../store/version.js';
import type { ExpectedVersion } from './if-match.js';
import { trashCutoff } from './purge-trash.js';
import { requireDocumentId, writeInState, type WriteTarget } from './write-target.js';

/**
 * Takes a document out of the trash (decisions.md 3). 404 when it is not there or too long there, 403 for another
 * user's, 409 when a unique value was taken since, 412 CHANGED_MEANWHILE for another version than the expected one.
 */
export async function recoverDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  expected: ExpectedVersion = null,
): Promise<PresentedDocument> {
  const id = requireDocumentId(idText);
  const trashed = { _id: id, isDeleted: true, deletedAt: { $gt: trashCutoff(app) } };
  const set = { isDeleted: false, deletedAt: null, updatedAt: nextVersion(app.clock.now(), id, expected) };
  const recovered = await writeInState(
    app,
    place,
    trashed,
    { action: 'update', expected, notFound: notInTrash },
    (filter) => changeDocumentRecord(app, place.collection, filter, { action: 'recover', set }),
  );
  return presentWritten(recovered, place.writer);
}

/** The 404 for what nobody could take back. */
export const notInTrash = () => missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the trash');
