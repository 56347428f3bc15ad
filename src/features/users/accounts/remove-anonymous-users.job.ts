import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { parseDuration } from '../../../config/setting-readers.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import { userCaller } from '../../access/operator-caller.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { projectStore } from '../../projects/project-store.js';
import type { Project } from '../../projects/project.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import { findLiveSessions } from '../sessions/session.js';
import type { User } from '../user.js';
import { userStore } from '../user-store.js';
import { deleteUser } from './delete-user.js';
import { identityStore } from './linked-identity.js';
import { hasPasskey } from './passkey.js';

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
