import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { projectStore } from '../../projects/project-store.js';
import type { Project } from '../../projects/project.js';
import { removeDeadPasskeys, hasPasskey } from '../accounts/sign-in-methods.js';
import { endSessions, sessionsEnd } from '../sessions/end-sessions.js';
import type { User } from '../user.js';
import { findUser, noteInAccount, accountChanged } from '../user-store.js';
import { factorsEnd, isResetDue } from './factors.js';
import { conflict } from '../../../errors.js';
import { parseDuration } from '../../../config/setting-readers.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import { deliverToUser } from '../user-hooks.js';

/** The account after a reset of its factors that is due: it has none, and its sessions have ended. */
export async function applyReset(app: App, project: Project, user: User): Promise<User> {
  if (!isResetDue(user, app.clock.now())) return user;
  const { mfaResetAt, stamp } = user[HIDDEN_FIELD];
  const reset = await noteInAccount(
    app,
    project._id,
    { _id: user._id, [`${HIDDEN_FIELD}.mfaResetAt`]: mfaResetAt, [`${HIDDEN_FIELD}.stamp`]: stamp ?? null },
    { ...factorsEnd(), ...sessionsEnd(app, user) },
  );
  if (reset) await endSessions(app, project, reset, 'account changed');
  if (reset) await removeDeadPasskeys(app, project, reset);
  return reset ?? (await findUser(app, project._id, user._id)) ?? user;
}

/** Ends the sessions when a reset takes effect; the factors count no more from that moment anyway. */
export const resetFactorsJob: JobDefinition<App, { projectId: string; userId: string }> = {
  name: 'users.resetFactors',
  retry: { delaysMs: [1000, 10_000, 60_000] },
  async run(app, { projectId, userId }) {
    const project = await projectStore(app).findOne({ _id: new ObjectId(projectId) });
    const user = project && (await findUser(app, project._id, new ObjectId(userId)));
    if (project && user) await applyReset(app, project, user);
  },
};

/**
 * Has the project take all factors off an account, for a user who has lost them: after its delay, and notifies the
 * address about it. Using a factor cancels it. Asked again it stays as it was. 409 TOTP_NOT_ENROLLED.
 */
export async function requestReset(app: App, project: Project, user: User): Promise<User> {
  const { totp, mfaResetAt } = user[HIDDEN_FIELD];
  if (!totp && !(await hasPasskey(app, project, user))) {
    throw conflict('TOTP_NOT_ENROLLED', 'The account has no MFA');
  }
  if (mfaResetAt) return applyReset(app, project, user);
  const { mfaResetDelay } = signInOf(project);
  const at = new Date(app.clock.now() + parseDuration(mfaResetDelay));
  // Before the note: no reset takes effect without a notification.
  const variables = { projectName: project.name, moment: at.toISOString() };
  const { email: to } = user;
  if (to !== undefined) {
    await deliverToUser(app, project, { template: 'mfa-reset-notice', to, variables }, { user });
  }
  const payload = { projectId: project._id.toHexString(), userId: user._id.toHexString() };
  await app.jobs.enqueue(resetFactorsJob, payload, { runAt: at });
  const asRead = {
    _id: user._id,
    [`${HIDDEN_FIELD}.totp.since`]: totp?.since ?? null,
    [`${HIDDEN_FIELD}.mfaResetAt`]: null,
  };
  const noted = await noteInAccount(app, project._id, asRead, { [`${HIDDEN_FIELD}.mfaResetAt`]: at });
  if (!noted) throw accountChanged();
  return applyReset(app, project, noted);
}
