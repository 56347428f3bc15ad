import type { App } from '../../../app.js';
import type { Referrer } from '../../access/access-rules.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { removeDocumentRecord } from '../../documents/store/document-store.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';
import { userGone } from '../user-store.js';
import { finishDeletionLater, finishUserDeletion } from './finish-user-deletion.job.js';

/**
 * Removes an account permanently; references to it are handled by their `onDelete`. Its tokens end here at
 * once, elsewhere within a second, and after a crash within a minute. 404 when the user is gone, 409
 * DOCUMENT_REFERRED_TO when a document keeps it.
 */
export async function deleteUser(
  app: App,
  project: Project,
  { _id }: Pick<User, '_id'>,
  referrer: Referrer | null = null,
): Promise<void> {
  const collection = await requireCollection(app, project._id, USERS);
  const removed = await app.db.useReserve(async () => {
    await finishDeletionLater(app, project._id, _id);
    return removeDocumentRecord(app, collection, _id, referrer);
  });
  // Before the answer for an unknown user, so that repeating finishes what a crash left.
  await finishUserDeletion(app, project._id, _id);
  if (!removed) throw userGone();
}
