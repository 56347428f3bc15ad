import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { forgetCutoffs } from '../../access/token-cutoff.js';
import { sessionStore, findLiveSessions } from '../sessions/session.js';
import { userGone, userStore } from '../user-store.js';
import { identityStore, passkeyStore, hasPasskey } from './sign-in-methods.js';
import type { Referrer } from '../../access/access-rules.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { removeDocumentRecord } from '../../documents/store/document-store.js';
import { REMOVE_WAYS_IN } from '../../documents/store/state-writes.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';
import { AppError } from '../../../errors.js';
import { parseDuration } from '../../../config/setting-readers.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import { userCaller } from '../../access/operator-access.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { projectStore } from '../../projects/project-store.js';
import { signInOf } from '../../projects/sign-in-settings.js';

/** Removes what opened an account that is gone: sessions, identities and passkeys. There may be any number of them. */
async function removeWaysIn(app: App, projectId: ObjectId, userId: ObjectId): Promise<void> {
  for (const store of [sessionStore, identityStore, passkeyStore]) await store(app).deleteMany({ projectId, userId });
}

/** The same wherever an account is removed, and after a crash: stored by the transaction that removes it. */
export const removeWaysInJob: JobDefinition<App, { projectId: string; userId: string }> = {
  name: REMOVE_WAYS_IN.name,
  retry: { delaysMs: [1000, 10_000, 60_000] },
  run: (app, { projectId, userId }) => removeWaysIn(app, new ObjectId(projectId), new ObjectId(userId)),
};

/**
 * Removes an account permanently; references to it are handled by their `onDelete`. Its tokens end here at
 * once, elsewhere within a second. 404 when the user is gone, 409 DOCUMENT_REFERRED_TO when a document keeps it.
 */
export async function deleteUser(
  app: App,
  project: Project,
  { _id }: Pick<User, '_id'>,
  referrer: Referrer | null = null,
): Promise<void> {
  const collection = await requireCollection(app, project._id, USERS);
  if (!(await removeDocumentRecord(app, collection, _id, referrer))) throw userGone();
  forgetCutoffs(app, project._id);
  await removeWaysIn(app, project._id, _id);
}

/** Deletes anonymous users of a project's `anonymousKeep` without a live session, identity or passkey. */
export const removeAnonymousUsersJob: JobDefinition<App> = {
  name: 'users.removeAnonymous',
  retry: { delaysMs: [60_000, 300_000] },
  async run(app, _payload, { stopping }) {
    if (!(await isClockSteady(app))) return;
    for await (const project of projectStore(app).find({ state: 'active', 'signIn.anonymous': { $exists: true } })) {
      if (stopping.aborted) return;
      await removeAnonymousUsers(app, project, stopping);
    }
  },
};

async function removeAnonymousUsers(app: App, project: Project, stopping: AbortSignal): Promise<void> {
  const before = new Date(app.clock.now() - parseDuration(signInOf(project).anonymousKeep));
  const anonymous = { isDeleted: false, createdAt: { $lte: before }, [`${HIDDEN_FIELD}.anonymous`]: true };
  for await (const user of userStore(app, project._id).find(anonymous).sort({ createdAt: -1, _id: -1 })) {
    if (stopping.aborted) return;
    const isReached =
      (await findLiveSessions(app, project._id, user).limit(1).toArray()).length > 0 ||
      (await identityStore(app).findOne({ projectId: project._id, userId: user._id })) !== null ||
      (await hasPasskey(app, project, user));
    if (!isReached) await removeAnonymousUser(app, project, user);
  }
}

/** Deletes one user, unless a document keeps it (`onDelete: restrict`) or it no longer exists. */
async function removeAnonymousUser(app: App, project: Project, user: User): Promise<void> {
  try {
    await deleteUser(app, project, user, { caller: userCaller(project, user._id.toHexString()) });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    app.log.warn({ userId: user._id.toHexString(), code: error.code }, 'an anonymous user was not removed');
  }
}
