import type { App } from '../../../app.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { emailTaken, isEmailConflict } from '../accounts/insert-user.js';
import { emailTakenWithMergeToken } from './account-merge.js';
import { checkCode, codeInvalid, findCode, type CheckedCode } from './one-time-code.js';
import { findVerifyingSession, transferOwnership, type VerifyingSession } from './ownership.js';
import type { Asker } from './mail-allowance.js';
import { LASTING, type User } from '../user.js';
import { findUser, findUserByEmail } from '../user-store.js';

/**
 * Marks the address as its owner's, or lets a pending one take the place of the account's (decisions.md 12). The person
 * who confirms owns the account from then on: sessions, tokens and identities end, but for the `session` in which it
 * was done; outside the account's sessions the password and factors end too. Answers whether a password ended. 400
 * OTP_INVALID; a code works once. 409 EMAIL_TAKEN with a merge token for anonymous users.
 */
export async function verifyEmail(
  app: App,
  project: Project,
  input: { email: string; otp: string },
  session: string | null,
  asker: Asker,
): Promise<{ passwordEnded: boolean }> {
  const change = await findCode(app, project, 'email-change', input.email, input.otp, asker);
  if (change) return confirmChange(app, project, input.email, change, session);
  const code = await checkCode(app, project, 'verification', input.email, input.otp, asker);
  // Marked before the code is spent: a crash in between leaves a code that finds nothing left to do.
  const user = await findUserByEmail(app, project._id, input.email);
  let passwordEnded = false;
  if (user && !user.emailVerified) {
    const verifying = await findVerifyingSession(app, user, session);
    await transferOwnership(app, project, user, { email: user.email, emailVerified: false }, {}, verifying);
    passwordEnded = endsPassword(user, verifying);
  }
  if (!(await code.spend()) || !user) throw codeInvalid();
  return { passwordEnded };
}

async function confirmChange(
  app: App,
  project: Project,
  email: string,
  code: CheckedCode,
  session: string | null,
): Promise<{ passwordEnded: boolean }> {
  const user = code.userId && (await findUser(app, project._id, code.userId));
  if (!user || user[HIDDEN_FIELD].disabledAt || user[HIDDEN_FIELD].pendingEmail?.address !== email) throw codeInvalid();
  const verifying = await findVerifyingSession(app, user, session);
  const pending = { [`${HIDDEN_FIELD}.pendingEmail.address`]: email };
  try {
    if (!(await transferOwnership(app, project, user, pending, { email, ...LASTING }, verifying))) {
      throw codeInvalid();
    }
  } catch (error) {
    if (!isEmailConflict(error)) throw error;
    // Only in the anonymous user's session: another caller with the code may be another person.
    if (!verifying || user.email !== undefined) throw emailTaken();
    if (!(await code.spend())) throw codeInvalid();
    throw await emailTakenWithMergeToken(app, project, user, email);
  }
  await code.spend();
  return { passwordEnded: endsPassword(user, verifying) };
}

function endsPassword(user: User, verifying: VerifyingSession): boolean {
  return verifying === null && user[HIDDEN_FIELD].passwordHash !== null;
}
