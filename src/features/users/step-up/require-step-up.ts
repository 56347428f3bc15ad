import type { App } from '../../../app.js';
import { forbidden, unauthenticated } from '../../../errors.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { openObject, text } from '../../../platform/schema/schema.js';
import { isToCome } from '../../../platform/time/clock.js';
import { levelOf, type Level } from '../../access/caller.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { withCurrentPassword } from '../accounts/password.js';
import { PASSWORD } from '../accounts/present-user.js';
import { FACTOR_FIELDS, takeFactor, type GivenFactor } from '../factors/check-factor.js';
import { hasPasskey } from '../accounts/sign-in-methods.js';
import { asksForCode, findLevel } from '../factors/factors.js';
import { takeCode } from '../codes/one-time-code.js';
import { isSessionOf } from '../sessions/end-sessions.js';
import { authenticationOf, sessionStore, type AuthMethod, type SessionAuthentication } from '../sessions/session.js';
import { isAnonymous, type User } from '../user.js';
import { issueAccessToken } from '../sessions/open-session.js';

/** Sensitive changes of an account accept an authentication of this age. */
const FRESH_MS = 10 * 60_000;

/** Credentials for re-authentication in a body. */
interface StepUpCredentials extends GivenFactor {
  currentPassword?: string;
  otp?: string;
}

/** Fields of a body for re-authentication. */
export const STEP_UP_FIELDS = {
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

export const STEP_UP_BODY = openObject(STEP_UP_FIELDS, 'StepUp');

/** Errors of routes that require re-authentication. */
export const STEP_UP_ERRORS = {
  400: ['OTP_INVALID'],
  401: ['INVALID_CREDENTIALS', 'MFA_CODE_INVALID', 'PASSKEY_INVALID'],
  403: ['STEP_UP_REQUIRED', 'PASSKEYS_OFF'],
  423: ['ACCOUNT_LOCKED'],
  503: ['BUSY'],
};

/** A signed-in user, the session behind the token, and the network of the request. */
interface SessionUser {
  user: User;
  session: string | null;
  ip: string;
}

/**
 * Verifies the credentials in a body, MFA first. 401 INVALID_CREDENTIALS or MFA_CODE_INVALID, or 400 OTP_INVALID for
 * wrong ones, which count as guesses; null if there are none.
 */
async function verifyCredentials(
  app: App,
  project: Project,
  { user, ip }: SessionUser,
  { currentPassword, otp, ...factor }: StepUpCredentials,
): Promise<AuthMethod | null> {
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
 * 403 STEP_UP_REQUIRED unless the body or the session has an authentication of the account's highest level from the
 * last ten minutes.
 */
export async function requireStepUp(
  app: App,
  project: Project,
  sessionUser: SessionUser,
  given: StepUpCredentials,
): Promise<void> {
  const { user } = sessionUser;
  const method = await verifyCredentials(app, project, sessionUser, given);
  const level = await findLevel(app, project, user);
  if (method && levelOf([method]) >= level) return;
  const session = await findFresh(app, sessionUser, level);
  // Anonymous users have no credentials but the session.
  if (session && (isAnonymous(user) || levelOf(session.amr) >= level)) return;
  throw await stepUpRequired(app, project, user);
}

/** The error for a missing re-authentication, with the accepted methods. */
async function stepUpRequired(app: App, project: Project, user: User): Promise<Error> {
  const methods = await stepUpMethods(app, project, user);
  const mailed = methods.includes('otp') ? ' (step-up/code mails an otp)' : '';
  const message = `Re-authenticate: send ${methods.join(' or ')}${mailed}, here or to step-up`;
  return forbidden('STEP_UP_REQUIRED', message, { details: [{ field: 'proof', rule: 'step-up', message, methods }] });
}

async function stepUpMethods(app: App, project: Project, user: User): Promise<string[]> {
  const passkey = (await hasPasskey(app, project, user)) ? ['passkey'] : [];
  if (asksForCode(app, user)) return ['totp', 'recoveryCode', ...passkey];
  if (passkey.length > 0) return passkey;
  return [
    ...(user[HIDDEN_FIELD].passwordHash === null ? [] : ['currentPassword']),
    ...(user.email === undefined ? [] : ['otp']),
  ];
}

/**
 * The authentication of the session if it is recent enough at the account's level, otherwise null. The session may have
 * ended while its access token is still valid.
 */
async function findFresh(
  app: App,
  { user, session }: SessionUser,
  level: Level,
): Promise<SessionAuthentication | null> {
  if (session === null) return null;
  const found = await sessionStore(app).findOne({ _id: session, userId: user._id, revokedAt: null });
  if (!found || !isSessionOf(found, user)) return null;
  const authentication = authenticationOf(found);
  if (isAnonymous(user)) return authentication;
  const at = level === 2 ? found.mfaAt : authentication.authAt;
  return at && isToCome(at.getTime() + FRESH_MS, FRESH_MS, app.clock.now()) ? authentication : null;
}

/**
 * Stores a re-authentication in the session and returns an access token with it. 403 STEP_UP_REQUIRED for credentials
 * below the account's highest level; 401 if the session has ended.
 */
export async function stepUp(
  app: App,
  project: Project,
  sessionUser: SessionUser,
  given: StepUpCredentials,
): Promise<string> {
  const { user, session } = sessionUser;
  const method = await verifyCredentials(app, project, sessionUser, given);
  if (!method || levelOf([method]) < (await findLevel(app, project, user))) {
    throw await stepUpRequired(app, project, user);
  }
  const now = app.clock.now();
  const live = { _id: session ?? '', userId: user._id, revokedAt: null };
  const found = await sessionStore(app).findOne(live);
  const proved = found && {
    amr: [...new Set([...authenticationOf(found).amr, method])],
    authAt: new Date(now),
    ...(levelOf([method]) === 2 && { mfaAt: new Date(now) }),
  };
  if (!proved || (await sessionStore(app).updateOne(live, { $set: proved })).matchedCount === 0) {
    throw unauthenticated('TOKEN_INVALID', 'The session has ended: sign in again');
  }
  return issueAccessToken(app, project, user, { ...found, ...proved }, now);
}
