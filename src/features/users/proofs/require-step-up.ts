import type { App } from '../../../app.js';
import { forbidden } from '../../../errors.js';
import { text } from '../../../platform/schema/schema.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { withCurrentPassword } from '../accounts/check-password.js';
import { PASSWORD } from '../accounts/describe-user.js';
import { checkCode, codeInvalid } from '../codes/one-time-code.js';
import { isSessionOf } from '../sessions/end-sessions.js';
import { proofOf, type ProofMethod } from '../sessions/proof.js';
import { sessionStore } from '../sessions/session.js';
import type { User } from '../user.js';

/** For so long a proof suffices for what changes the ways into an account. */
const FRESH_MS = 10 * 60_000;

/** A proof in a body. */
export interface GivenProof {
  currentPassword?: string;
  otp?: string;
}

/** The fields of a body by which a signed-in user proves once more to be the user. */
export const PROOF_FIELDS = {
  'currentPassword?': PASSWORD,
  'otp?': text({
    minLength: 1,
    maxLength: 72,
    wellFormed: true,
    description: 'From `step-up/code`.',
    examples: ['123456'],
  }),
};

/** Refusals of routes that want a proof. */
export const PROOF_REFUSALS = {
  400: ['OTP_INVALID'],
  401: ['INVALID_CREDENTIALS'],
  403: ['STEP_UP_REQUIRED'],
  423: ['ACCOUNT_LOCKED'],
  503: ['BUSY'],
};

/** A signed-in user, the session behind the token, and the network of the request. */
export interface ProvingUser {
  user: User;
  session: string | null;
  ip: string;
}

/**
 * Checks the proof in a body: 401 INVALID_CREDENTIALS or 400 OTP_INVALID for a wrong one, which counts like any other
 * guess; null when there is none.
 */
export async function checkProof(
  app: App,
  project: Project,
  { user, ip }: ProvingUser,
  { currentPassword, otp }: GivenProof,
): Promise<ProofMethod | null> {
  if (currentPassword !== undefined) {
    await withCurrentPassword(app, project._id, user, { currentPassword, ip }, () => Promise.resolve());
    return 'pwd';
  }
  if (otp === undefined) return null;
  const code = await checkCode(app, project, 'login', user.email, otp);
  if (!(await code.spend())) throw codeInvalid();
  return 'otp';
}

/** 403 STEP_UP_REQUIRED unless the body or the session has a proof that is not older than ten minutes. */
export async function requireStepUp(
  app: App,
  project: Project,
  proving: ProvingUser,
  given: GivenProof,
): Promise<void> {
  if ((await checkProof(app, project, proving, given)) || (await isFresh(app, proving))) return;
  throw stepUpRequired(proving.user);
}

/** The refusal for want of a proof, with the ways to give one. */
export function stepUpRequired(user: User): Error {
  const methods = [...(user[HIDDEN_FIELD].passwordHash === null ? [] : ['currentPassword']), 'otp'];
  const message = `Prove once more who you are: send ${methods.join(' or ')} (step-up/code mails one), here or to step-up`;
  return forbidden('STEP_UP_REQUIRED', message, { details: [{ field: 'proof', rule: 'step-up', message, methods }] });
}

/** Of a session that has ended a token may still be about. */
async function isFresh(app: App, { user, session }: ProvingUser): Promise<boolean> {
  if (session === null) return false;
  const found = await sessionStore(app).findOne({ _id: session, userId: user._id, revokedAt: null });
  if (!found || !isSessionOf(found, user)) return false;
  const ageMs = app.clock.now() - proofOf(found).authAt.getTime();
  return ageMs < FRESH_MS && ageMs > -CLOCKS_DIFFER_MS;
}
