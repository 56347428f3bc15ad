import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { cutOffTokens, hasCutoff } from '../../access/token-cutoff.js';
import { sessionStore, findLiveSessions } from '../sessions/session.js';
import { findUser, userGone, userStore } from '../user-store.js';
import { identityStore, passkeyStore, hasPasskey } from './sign-in-methods.js';
import type { Referrer } from '../../access/access-rules.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { removeDocumentRecord } from '../../documents/store/document-store.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';
import { AppError } from '../../../errors.js';
import { parseDuration } from '../../../config/setting-readers.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import { userCaller } from '../../access/operator-access.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { projectStore } from '../../projects/project-store.js';
import { signInOf } from '../../projects/sign-in-settings.js';

const FINISH_AFTER_MS = 30_000;

/** Ends the tokens, sessions and identities of an account that is gone. Harmless to repeat. */
async function finishUserDeletion(app: App, projectId: ObjectId, userId: ObjectId): Promise<void> {
  await cutOffTokens(app, projectId, userId.toHexString(), {
    // Ahead, as a token may have been signed by a clock that is.
    before: new Date(app.clock.now() + CLOCKS_DIFFER_MS),
  });
  await sessionStore(app).deleteMany({ projectId, userId });
  await identityStore(app).deleteMany({ projectId, userId });
  await passkeyStore(app).deleteMany({ projectId, userId });
}

/**
 * To be called before an account is removed: should the process die right after, a worker does what finishUserDeletion
 * does.
 */
export async function finishDeletionLater(app: App, projectId: ObjectId, userId: ObjectId): Promise<void> {
  const now = app.clock.now();
  const payload = { projectId: projectId.toHexString(), userId: userId.toHexString(), begunMs: now };
  await app.jobs.enqueue(finishUserDeletionJob, payload, { runAt: new Date(now + FINISH_AFTER_MS) });
}

/** Finishes a deletion whose process died between its writes; otherwise finds nothing to do. */
export const finishUserDeletionJob: JobDefinition<App, { projectId: string; userId: string; begunMs: number }> = {
  name: 'users.finishDeletion',
  retry: { delaysMs: [1000, 10_000, 60_000] },
  async run(app, payload) {
    const [projectId, userId] = [new ObjectId(payload.projectId), new ObjectId(payload.userId)];
    if (await findUser(app, projectId, userId)) return;
    const left =
      (await sessionStore(app).findOne({ projectId, userId })) ??
      (await identityStore(app).findOne({ projectId, userId })) ??
      (await passkeyStore(app).findOne({ projectId, userId }));
    if (!left && (await hasCutoff(app, projectId, payload.userId, new Date(payload.begunMs)))) return;
    await finishUserDeletion(app, projectId, userId);
  },
};

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
