import { plain } from '../../../http/routes/route.js';
import { object } from '../../../platform/schema/schema.js';
import { USER } from '../accounts/present-user.js';
import { TOKEN_FIELDS, TOKEN_HEADERS } from '../sessions/deliver-tokens.js';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { unauthenticated, type AppError, forbidden } from '../../../errors.js';
import type { Uses } from '../../quota/insert-service-record.js';
import { levelOf } from '../../access/caller.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { requireSigningKey } from '../../projects/token-secret.js';
import { oneTimeTokens } from '../../quota/one-time-token.js';
import { takeFactor, type GivenFactor } from '../factors/check-factor.js';
import { hasPasskey } from '../accounts/sign-in-methods.js';
import { asksForCode } from '../factors/factors.js';
import { applyReset } from '../factors/reset-factors.js';
import { openSession, type Client, type Tokens } from '../sessions/open-session.js';
import type { Authentication } from '../sessions/session.js';
import type { User } from '../user.js';
import { findUser } from '../user-store.js';

/** What a sign-in that lacks the second factor rests on. */
interface PendingAuthentication {
  userId: ObjectId;
  authentication: Authentication;
  /** The account's, when it was given: what ends sessions ends this too. */
  stamp: string | null;
}

const MFA_TOKENS = oneTimeTokens<PendingAuthentication>('mfa', 5 * 60_000);

/**
 * Opens the session of a user who has authenticated; where the account has a second factor, none: 401
 * MFA_REQUIRED with the token that goes to completeWithFactor.
 */
export async function completeSignIn(
  app: App,
  project: Project,
  user: User,
  client: Client,
  authentication: Authentication,
  uses?: Uses,
): Promise<Tokens> {
  const current = await applyReset(app, project, user);
  if (levelOf([authentication.method]) === 2 || !asksForCode(app, current)) {
    return openSession(app, project, current, client, authentication, uses);
  }
  const held: PendingAuthentication = {
    userId: current._id,
    authentication,
    stamp: current[HIDDEN_FIELD].stamp ?? null,
  };
  const mfaToken = await MFA_TOKENS.give(app, project, held);
  const methods = ['totp', 'recoveryCode', ...((await hasPasskey(app, project, current)) ? ['passkey'] : [])];
  throw unauthenticated('MFA_REQUIRED', 'The account has MFA. Send a code with mfaToken to login/mfa', {
    data: { mfaToken, methods, expiresIn: '5m' },
  });
}

/**
 * Finishes a sign-in by the second factor: token and code open one session at most. 401 MFA_TOKEN_INVALID for a token
 * that is unknown, used, too old, tried five times or from before the sessions of the account ended; 401
 * MFA_CODE_INVALID, 423 ACCOUNT_LOCKED.
 */
export async function completeWithFactor(
  app: App,
  project: Project,
  { mfaToken, ...factor }: GivenFactor & { mfaToken: string },
  client: Client,
): Promise<SignedIn> {
  requireSigningKey(app, project);
  const met = await MFA_TOKENS.meet(app, project, mfaToken);
  const user = met && (await findUser(app, project._id, met.held.userId));
  if (!user) throw tokenInvalid();
  const { authentication, stamp } = met.held;
  if ((user[HIDDEN_FIELD].stamp ?? null) !== stamp) throw tokenInvalid();
  if (user[HIDDEN_FIELD].disabledAt) throw accountDisabled();
  const second = await takeFactor(app, project, { user, ip: client.ip }, factor);
  if (second === null) throw tokenInvalid();
  const uses: Uses = (tx) => {
    if (!met.use(tx)) throw tokenInvalid();
  };
  return { user, tokens: await openSession(app, project, user, client, { ...authentication, second }, uses) };
}

function tokenInvalid(): AppError {
  return unauthenticated('MFA_TOKEN_INVALID', 'The sign-in has expired or was already finished. Sign in again');
}

/** A user with the tokens of a new session. */
export interface SignedIn {
  user: User;
  tokens: Tokens;
}

export function accountDisabled(): AppError {
  return forbidden('ACCOUNT_DISABLED', 'This account has been disabled');
}

const SIGNED_IN_REPLY = object({ user: USER, ...TOKEN_FIELDS }, 'SignedIn');

/** The user with the tokens, as a sign-in of whatever kind answers it. */
export const signedIn = (status = 200) => ({
  ...plain(SIGNED_IN_REPLY, 'The user, signed in', status),
  headers: TOKEN_HEADERS,
});
