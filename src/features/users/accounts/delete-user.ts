import type { App } from '../../../app.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { cutOffTokens } from '../../access/token-cutoff.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { removeDocumentRecord } from '../../documents/store/document-store.js';
import type { Project } from '../../projects/project.js';
import { identityStore } from './linked-identity.js';
import { sessionStore } from '../sessions/session.js';
import type { User } from '../user.js';
import { userGone } from '../user-store.js';

/**
 * Removes an account for good; documents it owns stay. Its tokens end here at once, elsewhere within a second. 404 when
 * the user is gone.
 */
export async function deleteUser(app: App, project: Project, user: Pick<User, '_id'>): Promise<void> {
  const collection = await requireCollection(app, project._id, USERS);
  const removed = await removeDocumentRecord(app, collection, { _id: user._id, isDeleted: false });
  // Before the answer for an unknown user, so that repeating finishes what a crash left.
  await cutOffTokens(app, project._id, user._id.toHexString(), {
    // Ahead, as a token may have been signed by a clock that is.
    before: new Date(app.clock.now() + CLOCKS_DIFFER_MS),
  });
  await sessionStore(app).deleteMany({ projectId: project._id, userId: user._id });
  await identityStore(app).deleteMany({ projectId: project._id, userId: user._id });
  if (!removed) throw userGone();
}
