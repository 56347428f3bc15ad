import type { App } from '../../../app.js';
import { forbidden } from '../../../errors.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { openObject, text } from '../../../platform/schema/schema.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { levelOf, type Level } from '../../access/caller.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { withCurrentPassword } from '../accounts/check-password.js';
import { PASSWORD } from '../accounts/describe-user.js';
import { FACTOR_FIELDS, takeFactor, type GivenFactor } from '../factors/check-factor.js';
import { hasPasskey } from '../accounts/passkey.js';
import { asksForCode, findLevel } from '../factors/factors.js';
import { takeCode } from '../codes/one-time-code.js';
import { isSessionOf } from '../sessions/end-sessions.js';
import { proofOf, type ProofMethod, type SessionProof, sessionStore } from '../sessions/session.js';
import { isAnonymous, type User } from '../user.js';

/** Time for which a proof suffices for what changes the ways into an account. */
const FRESH_MS = 10 * 60_000;

/** A proof in a body. */
export interface GivenProof extends GivenFactor {
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
  ...FACTOR_FIELDS,
};

export const PROOF = openObject(PROOF_FIELDS, 'Proof');

/** Refusals of routes that want a proof. */
export const PROOF_REFUSALS = {
  400: ['OTP_INVALID'],
  401: ['INVALID_CREDENTIALS', 'MFA_CODE_INVALID', 'PASSKEY_INVALID'],
  403: ['STEP_UP_REQUIRED', 'PASSKEYS_OFF'],
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
 * Checks the proof in a body, that of a second factor before others: 401 INVALID_CREDENTIALS or MFA_CODE_INVALID, or
 * 400 OTP_INVALID for a wrong one, which counts like any other guess; null when there is none.
 */
export async function checkProof(
  app: App,
  project: Project,
  { user, ip }: ProvingUser,
  { currentPassword, otp, ...factor }: GivenProof,
): Promise<ProofMethod | null> {
  const second = await takeFactor(app, project, { user, ip }, factor);
  if (second) return second;
  if (currentPassword !== undefined) {
    await withCurrentPassword(app, project._id, user, { currentPassword, ip }, () => Promise.resolve());
    return 'pwd';
  }
  if (otp === undefined || user.email === undefined) return null;
  // The sender is signed in to the account.
  const asker = { network: clientNetwork(ip), findTie: () => Promise.resolve('known' as const) };
  await takeCode(app, project, 'login', user.email, otp, asker);
  return 'otp';
}

/**
 * 403 STEP_UP_REQUIRED unless the body or the session has a proof that is not older than ten minutes, of the account's
 * highest level.
 */
export async function requireStepUp(
  app: App,
  project: Project,
  proving: ProvingUser,
  given: GivenProof,
): Promise<void> {
  const { user } = proving;
  const method = await checkProof(app, project, proving, given);
  const level = await findLevel(app, project, user);
  if (method && levelOf([method]) >= level) return;
  const session = await findFresh(app, proving, level);
  // Anonymous users have no other proof than the session.
  if (session && (isAnonymous(user) || levelOf(session.amr) >= level)) return;
  throw await stepUpRequired(app, project, user);
}

/** The refusal for want of a proof, with the ways to give one. */
export async function stepUpRequired(app: App, project: Project, user: User): Promise<Error> {
  const methods = await waysToProve(app, project, user);
  const mailed = methods.includes('otp') ? ' (step-up/code mails an otp)' : '';
  const message = `Prove once more who you are: send ${methods.join(' or ')}${mailed}, here or to step-up`;
  return forbidden('STEP_UP_REQUIRED', message, { details: [{ field: 'proof', rule: 'step-up', message, methods }] });
}

async function waysToProve(app: App, project: Project, user: User): Promise<string[]> {
  const passkey = (await hasPasskey(app, project, user)) ? ['passkey'] : [];
  if (asksForCode(app, user)) return ['totp', 'recoveryCode', ...passkey];
  if (passkey.length > 0) return passkey;
  return [
    ...(user[HIDDEN_FIELD].passwordHash === null ? [] : ['currentPassword']),
    ...(user.email === undefined ? [] : ['otp']),
  ];
}

/**
 * The proofs of the session, as far as they are fresh at the account's level; null when they are not. Of a session that
 * has ended a token may still be about.
 */
async function findFresh(app: App, { user, session }: ProvingUser, level: Level): Promise<SessionProof | null> {
  if (session === null) return null;
  const found = await sessionStore(app).findOne({ _id: session, userId: user._id, revokedAt: null });
  if (!found || !isSessionOf(found, user)) return null;
  const proof = proofOf(found);
  if (isAnonymous(user)) return proof;
  const at = level === 2 ? found.mfaAt : proof.authAt;
  const ageMs = at ? app.clock.now() - at.getTime() : Infinity;
  return ageMs < FRESH_MS && ageMs > -CLOCKS_DIFFER_MS ? proof : null;
}
