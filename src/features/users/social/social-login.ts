import { createHash } from 'node:crypto';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid, unauthenticated, AppError, conflict } from '../../../errors.js';
import { randomToken, sha256Hex } from '../../../platform/ids.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { isOfHook } from '../../hooks/before-calls.js';
import type { Project } from '../../projects/project.js';
import { projectStore } from '../../projects/project-store.js';
import { oneTimeTokens } from '../../quota/one-time-token.js';
import { asksForCode } from '../factors/factors.js';
import { openSession, type Client } from '../sessions/open-session.js';
import { parseRefreshToken } from '../sessions/refresh-token.js';
import { endOneSession, sessionStore } from '../sessions/session.js';
import { completeSignIn, type SignedIn } from '../sign-in/complete-sign-in.js';
import { type User, isAnonymous, LASTING } from '../user.js';
import type { SocialChecks, SocialIdentity } from './social-identity.js';
import { requireSocialProvider, type SocialProvider } from './social-provider.js';
import { identityId, resolveSocialUser, type SocialUser, findLinked, linkIdentity } from './social-user.js';
import { findUser, accountChanged } from '../user-store.js';
import { changeUser } from '../accounts/change-user.js';
import { isEmailConflict } from '../accounts/insert-user.js';
import { identityStore, type LinkedIdentity } from '../accounts/sign-in-methods.js';
import { isEmail, normaliseEmail } from '../credentials.js';

const ATTEMPT_MS = 10 * 60_000;
const CODE_MS = 60_000;
const PROVIDER_FAILED = 'provider_failed';

/** Of both ways: what the application that began gives along. */
interface Attempt {
  provider: string;
  /** SHA-256, as base64url, of the verifier that only the application which began knows (RFC 7636). */
  codeChallenge?: string;
}

/** A sign-in that is out at a provider, by the `state` that was sent along. */
interface AttemptOut extends Attempt {
  checks: SocialChecks;
  /** Hash of the browser's cookie, but of a link. */
  browserHash?: string;
  callback: string;
  /** Where to go then. */
  redirectUrl: string;
  /** The application's own, to be given back to it. */
  appState?: string;
  /** The account that began to link an identity, and its stamp then. */
  linkOf?: ObjectId;
  stamp?: string | null;
}

/** Who has signed in, by which identity, and the account's stamp then; by the `rtCode` given to the application. */
interface AttemptBack extends Attempt {
  userId: ObjectId;
  identity: string;
  stamp: string | null;
  /** The session whose access token stood in the address. */
  addressSession?: string;
}

/** An identity that waits for the user whose account it is to open; `verifiedEmail` is its address. */
interface AttemptToLink extends Attempt {
  linkOf: ObjectId;
  stamp: string | null;
  identity: string;
  verifiedEmail: string | null;
}

const OUT = oneTimeTokens<AttemptOut>('social-out', ATTEMPT_MS);
const BACK = oneTimeTokens<AttemptBack>('social-back', CODE_MS);
const TO_LINK = oneTimeTokens<AttemptToLink>('social-link', CODE_MS);

/**
 * The values an application may send along to recognise its own sign-in: `state` comes back with the browser, the
 * challenge is demanded at the exchange.
 */
export interface ApplicationChecks {
  appState: string | null;
  codeChallenge: string | null;
}

export interface StartedSocialLogin {
  /** The address to send the browser to. */
  url: string;
  /** A cookie for the browser: only the one that went out may come back. */
  cookie: { name: string; value: string; maxAgeMs: number } | null;
}

/** A way out to a provider, as an application asks for it. */
export interface WayOut extends ApplicationChecks {
  provider: string;
  redirectUrl: string | null;
  callback: string;
}

/**
 * Begins a sign-in at a provider, or the link of an identity to the account `linkOf`; one that cannot be reached sends
 * the browser back with `error`. 404 for an unknown provider, 400 for an address to return to that is not on the
 * provider's list.
 */
export async function startSocialLogin(
  app: App,
  project: Project,
  input: WayOut,
  linkOf: User | null = null,
): Promise<StartedSocialLogin> {
  const provider = await requireSocialProvider(app, project._id, input.provider);
  const redirectUrl = input.redirectUrl ?? provider.redirectUrls[0]!;
  // Exact addresses only: the code that opens the account goes there.
  if (!provider.redirectUrls.includes(redirectUrl)) {
    throw invalid('REDIRECT_NOT_ALLOWED', 'This return URL is not one of the provider’s redirect URLs');
  }
  const begun = await findBeginning(app, provider, input.callback);
  const { appState, codeChallenge } = input;
  if (!begun) return { url: addressBack({ redirectUrl, appState }, 'error', PROVIDER_FAILED), cookie: null };
  const { url, checks } = begun;
  const browser = linkOf ? null : randomToken(32);
  const attempt: AttemptOut = {
    provider: provider.name,
    checks,
    // Only the user who began a link can finish it, so that no browser needs to be bound to it.
    ...(linkOf && { linkOf: linkOf._id, stamp: linkOf[HIDDEN_FIELD].stamp ?? null }),
    ...(browser !== null && { browserHash: sha256Hex(browser) }),
    callback: input.callback,
    redirectUrl,
    ...(appState !== null && { appState }),
    ...(codeChallenge !== null && { codeChallenge }),
  };
  await OUT.give(app, project, attempt, checks.state);
  const cookie = browser === null ? null : { name: attemptCookie(checks.state), value: browser, maxAgeMs: ATTEMPT_MS };
  return { url, cookie };
}

async function findBeginning(
  app: App,
  provider: SocialProvider,
  callback: string,
): Promise<{ url: string; checks: SocialChecks } | null> {
  const { beginAtProvider } = await import('./social-identity.js');
  try {
    return await beginAtProvider(app, provider, callback);
  } catch (error) {
    warnOfFailure(app, provider, error);
    return null;
  }
}

/**
 * Name of the cookie that ties an attempt to its browser; of its own for each, so that two tabs do not disturb each
 * other.
 */
export function attemptCookie(state: string): string {
  return `bsvc_social_${sha256Hex(state).slice(0, 16)}`;
}

/**
 * Ends the part at the provider and answers where to send the browser: back to the application, with `rtCode` or with
 * `error`, and with `#token=` where the provider's settings say so. An attempt is used up by its first return. 400
 * SOCIAL_STATE_INVALID when it is unknown, too old or another browser's, since the return address is unknown.
 */
export async function finishSocialLogin(
  app: App,
  input: { provider: string; query: URLSearchParams; browser: string },
  client: Client,
): Promise<string> {
  const taken = await OUT.take(
    app,
    null,
    input.query.get('state') ?? '',
    ({ provider, browserHash, linkOf }) =>
      provider === input.provider && (linkOf !== undefined || browserHash === sha256Hex(input.browser)),
  );
  const project = taken && (await projectStore(app).findOne({ _id: taken.projectId, state: 'active' }));
  if (!project) throw stateInvalid();
  const attempt = taken.held;
  const provider = await requireSocialProvider(app, project._id, input.provider);
  const identity = await findIdentity(app, provider, attempt, input.query);
  if (typeof identity === 'string') return addressBack(attempt, 'error', identity);
  if (attempt.linkOf) {
    const link: AttemptToLink = {
      ...begunWith(attempt),
      linkOf: attempt.linkOf,
      stamp: attempt.stamp ?? null,
      identity: identityId(project, provider, identity),
      verifiedEmail: identity.verifiedEmail,
    };
    return addressBack(attempt, 'rtCode', await TO_LINK.give(app, project, link));
  }
  const found = await resolveSocialUser(app, project, provider, identity, client).catch(refusedByHook);
  if (typeof found === 'string') return addressBack(attempt, 'error', found);
  // A client that sent a challenge wants nothing in the address that works without its verifier; nothing works without
  // the second factor.
  const isTokenSent =
    provider.tokenInAddress === true && attempt.codeChallenge === undefined && !asksForCode(app, found.user);
  if (!isTokenSent) return addressBack(attempt, 'rtCode', await storeCode(app, project, attempt, found));
  const opened = await openAddressSession(app, project, found, client).catch(refusedByHook);
  if (typeof opened === 'string') return addressBack(attempt, 'error', opened);
  const { accessToken, session } = opened;
  const back = addressBack(attempt, 'rtCode', await storeCode(app, project, attempt, found, session));
  return `${back}#${new URLSearchParams({ token: accessToken }).toString()}`;
}

/** The page gets the error in its address, as any other. */
function refusedByHook(error: unknown): 'refused' {
  if (error instanceof AppError && isOfHook(error)) return 'refused';
  throw error;
}

/** 400 SOCIAL_STATE_INVALID unless a sign-in at the provider is in progress with this `state`. */
export async function requireAttempt(app: App, provider: string, state: string): Promise<void> {
  if (!(await OUT.find(app, null, state, (held) => held.provider === provider))) throw stateInvalid();
}

function stateInvalid(): AppError {
  return invalid('SOCIAL_STATE_INVALID', 'This sign-in is unknown or has expired. Start again');
}

async function findIdentity(
  app: App,
  provider: SocialProvider,
  { callback, checks }: AttemptOut,
  query: URLSearchParams,
): Promise<SocialIdentity | string> {
  if (query.has('error')) return query.get('error') === 'access_denied' ? 'access_denied' : 'provider_refused';
  const { readIdentity } = await import('./social-identity.js');
  try {
    return await readIdentity(app, provider, new URL(`${callback}?${query.toString()}`), checks);
  } catch (error) {
    warnOfFailure(app, provider, error);
    return PROVIDER_FAILED;
  }
}

const MAX_LOGGED = 300;

/** The message, and what the provider says for itself: the rest of these errors can hold codes and tokens. */
function warnOfFailure(app: App, provider: SocialProvider, failure: unknown): void {
  const { message, error, error_description: description } = failure as Error & Record<string, unknown>;
  const said = [error, description].filter((text) => typeof text === 'string').join(': ');
  const answer = said === '' ? {} : { answer: said.slice(0, MAX_LOGGED) };
  app.log.warn({ provider: provider.name, reason: message, ...answer }, 'social sign-in failed');
}

/**
 * A session for the token that stands in an address, and so in the browser's history: it lasts as long as that token,
 * and only until the code is exchanged.
 */
async function openAddressSession(
  app: App,
  project: Project,
  { user, identity }: SocialUser,
  client: Client,
): Promise<{ accessToken: string; session: string }> {
  const { accessToken, refreshToken } = await openSession(app, project, user, client, { method: 'social', identity });
  const { session } = parseRefreshToken(refreshToken)!;
  const expiresAt = new Date(app.clock.now() + app.config.accessTokenTtlMs);
  await sessionStore(app).updateOne({ _id: session }, { $set: { expiresAt } });
  return { accessToken, session };
}

function storeCode(
  app: App,
  project: Project,
  attempt: AttemptOut,
  { user, identity }: SocialUser,
  addressSession?: string,
): Promise<string> {
  return BACK.give(app, project, {
    ...begunWith(attempt),
    userId: user._id,
    identity,
    stamp: user[HIDDEN_FIELD].stamp ?? null,
    ...(addressSession !== undefined && { addressSession }),
  });
}

function begunWith({ provider, codeChallenge }: Attempt): Attempt {
  return { provider, ...(codeChallenge !== undefined && { codeChallenge }) };
}

/**
 * Turns the code that came back with the browser into a session; a code works once, for a minute, and only with the
 * verifier of its challenge, if there is one. It ends the token that stood in the address beside it. 401
 * SOCIAL_CODE_INVALID, also when the sessions of the account were ended since the code was given.
 */
export async function exchangeSocialCode(
  app: App,
  project: Project,
  { rtCode, codeVerifier }: { rtCode: string; codeVerifier: string | null },
  client: Client,
): Promise<SignedIn> {
  const attempt = (await BACK.take(app, project, rtCode))?.held ?? null;
  const begunHere = attempt !== null && (attempt.codeChallenge ?? null) === challengeOf(codeVerifier);
  const user = begunHere ? await findUser(app, project._id, attempt.userId) : null;
  if (!attempt || !user || user[HIDDEN_FIELD].disabledAt || (user[HIDDEN_FIELD].stamp ?? null) !== attempt.stamp) {
    throw unauthenticated(
      'SOCIAL_CODE_INVALID',
      'The code is unknown, used, expired or belongs to another code_verifier. Start again',
    );
  }
  const { identity, addressSession } = attempt;
  const tokens = await completeSignIn(app, project, user, client, { method: 'social', identity });
  if (addressSession !== undefined) {
    await endOneSession(app, { _id: addressSession, projectId: project._id, userId: user._id }, 'signed out');
  }
  return { user, tokens };
}

/** Null without a verifier: then there must be no challenge either, and with one there must be one. */
function challengeOf(verifier: string | null): string | null {
  return verifier === null ? null : createHash('sha256').update(verifier).digest('base64url');
}

/** The application's address with the outcome and, when it sent one, its `state`. */
function addressBack(
  { redirectUrl, appState }: { redirectUrl: string; appState?: string | null },
  name: 'rtCode' | 'error',
  value: string,
): string {
  const query = new URLSearchParams({ [name]: value, ...(appState != null && { state: appState }) });
  return `${redirectUrl}${redirectUrl.includes('?') ? '&' : '?'}${query.toString()}`;
}

const MAX_RACES = 3;

/**
 * Links the identity that came back with `rtCode` to the account of the user who began it; its address need not match.
 * A code works once, for a minute. 400 SOCIAL_CODE_INVALID, also when the sessions of the account were ended since it
 * began; 409 IDENTITY_TAKEN when the identity opens another account.
 */
export async function finishLink(
  app: App,
  project: Project,
  user: User,
  { rtCode, codeVerifier }: { rtCode: string; codeVerifier: string | null },
): Promise<LinkedIdentity> {
  const taken = await TO_LINK.take(app, project, rtCode, ({ linkOf }) => linkOf.equals(user._id));
  const attempt = taken?.held;
  if (
    !attempt ||
    (attempt.codeChallenge ?? null) !== challengeOf(codeVerifier) ||
    attempt.stamp !== (user[HIDDEN_FIELD].stamp ?? null)
  ) {
    throw codeInvalid();
  }
  const { provider, identity } = attempt;
  for (let race = 0; race < MAX_RACES; race++) {
    const linked = await findLinked(app, project, identity);
    if (linked && !linked._id.equals(user._id)) throw identityTaken();
    if (!linked && !(await linkIdentity(app, project, provider, identity, user))) continue;
    const link = await identityStore(app).findOne({ _id: identity });
    if (!link) continue;
    if (isAnonymous(user)) await makeLast(app, project, user, attempt.verifiedEmail);
    return link;
  }
  throw accountChanged();
}

/**
 * Makes the account of an anonymous user permanent, with the address that the provider has verified, unless another
 * account has it.
 */
async function makeLast(app: App, project: Project, user: User, verifiedEmail: string | null): Promise<void> {
  const email = normaliseEmail(verifiedEmail ?? '');
  const stillAnonymous = { _id: user._id, [`${HIDDEN_FIELD}.anonymous`]: true };
  const proven = { email, emailVerified: true, [`${HIDDEN_FIELD}.pendingEmail`]: null };
  try {
    await changeUser(app, project, stillAnonymous, { ...LASTING, ...(isEmail(email) && proven) });
  } catch (error) {
    if (!isEmailConflict(error)) throw error;
    await changeUser(app, project, stillAnonymous, LASTING);
  }
}

function codeInvalid(): AppError {
  return invalid(
    'SOCIAL_CODE_INVALID',
    'The code is unknown, used, expired or belongs to another user or code_verifier. Start again',
  );
}

function identityTaken(): AppError {
  return conflict('IDENTITY_TAKEN', 'This identity is linked to another account. Unlink it there first');
}
