import type { App } from '../../../app.js';
import { conflict } from '../../../errors.js';
import { parseDuration } from '../../../config/setting-readers.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import type { User } from '../user.js';
import { deliverToUser } from '../user-hooks.js';
import { accountChanged, noteInAccount } from '../user-store.js';
import { hasPasskey } from '../accounts/passkey.js';
import { resetFactorsJob, applyReset } from './reset-factors.job.js';

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
