import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { missing } from '../../../errors.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { commitWrites, type DecidedWrite } from '../store/commit-writes.js';
import { trashCutoff } from '../store/document.js';
import { openRecovery } from '../store/state-writes.js';
import { openAdmission } from './admit-state.js';
import { presentWritten } from './guard-fields.js';
import type { ExpectedVersion } from './if-match.js';
import { requireDocumentId, type WriteTarget } from './write-target.js';

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
  const [recovered] = await commitWrites(app, [await decideRecovery(app, place, id, expected)]);
  return presentWritten(recovered!.after!, place.writer);
}

/** The decision to take a document back for a writer. */
export async function decideRecovery(
  app: App,
  place: WriteTarget,
  id: ObjectId,
  expected: ExpectedVersion,
): Promise<DecidedWrite> {
  const cutoff = trashCutoff(app);
  const admit = await openAdmission(place, {
    action: 'update',
    isThere: ({ isDeleted, deletedAt }) => isDeleted === true && deletedAt !== null && deletedAt > cutoff,
    expected,
    notFound: () => missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the trash'),
  });
  return openRecovery(app, { collection: place.collection, id, admit });
}
