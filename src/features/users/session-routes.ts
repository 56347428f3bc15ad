import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { hashRefreshToken, isGenuine, parseRefreshToken } from './sessions/refresh-token.js';
import { endOneSession, sessionStore } from './sessions/session.js';
import { AppError, unauthenticated } from '../../errors.js';
import { done, plain, route, type Route } from '../../http/routes/route.js';
import { object, oneOf, openObject } from '../../platform/schema/schema.js';
import { sessionOf } from '../access/caller.js';
import { ANY_KEY, ASKED_KEY } from '../access/key-access.js';
import { countAnonymousSignUp } from '../access/limit-requests.js';
import { EMAIL, ANONYMOUS_USER, NEW_USER, PASSWORD, presentUser } from './accounts/present-user.js';
import { setterOf } from './accounts/new-user.js';
import { normaliseEmail } from './credentials.js';
import {
  clearRefreshCookie,
  clientOf,
  deliverTokens,
  readRefreshToken,
  REFRESH_MODE,
  REFRESH_TOKEN,
  TOKEN_FIELDS,
  TOKEN_HEADERS,
} from './sessions/deliver-tokens.js';
import { signedIn } from './sign-in/complete-sign-in.js';
import { logIn } from './sign-in/log-in.js';
import { refreshSession } from './sessions/refresh-session.js';
import { requireAnonymousOn, signUpAnonymous, signUpSignedIn } from './sign-up.js';

/** What a request to sign out presents: a refresh token, the session of its access token, both or neither. */
interface Presented {
  refreshToken: string;
  session: string | null;
}

/**
 * Ends the session of a refresh token, the current one or an older, and that of an access token, with their access
 * tokens. Does nothing for anything else, so that signing out always works.
 */
async function logOut(app: App, project: Project, { refreshToken, session }: Presented): Promise<void> {
  const token = parseRefreshToken(refreshToken);
  const known = !token || isGenuine(app.secrets, token) ? {} : { tokenHash: hashRefreshToken(token) };
  const named = [...(token ? [{ _id: token.session, ...known }] : []), ...(session === null ? [] : [{ _id: session }])];
  for (const one of named) {
    const live = await sessionStore(app).findOne({ ...one, projectId: project._id, revokedAt: null });
    if (live) await endOneSession(app, live, 'signed out');
  }
}

/** Sign-up, sign-in and what keeps a session. */
export const SESSION_ROUTES: readonly Route[] = [
  route('POST /api/userAuth/signup', {
    id: 'signUp',
    bodySize: 'small',
    summary: 'Create an account and sign in',
    description: 'Also takes fields of the collection `users`; protected ones only with the secret key.',
    access: ASKED_KEY,
    headers: REFRESH_MODE,
    openBody: NEW_USER,
    example: { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada' },
    answers: signedIn(201),
    errors: {
      400: ['VALIDATION_FAILED', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
      401: ['INVALID_CREDENTIALS'],
      403: ['QUOTA_EXCEEDED'],
      409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
      413: ['DOCUMENT_TOO_LARGE'],
      503: ['BUSY'],
    },
    async handle({ app, ctx, caller, project, body }) {
      const { user, tokens } = await signUpSignedIn(app, project, body, setterOf(caller), clientOf(ctx));
      return { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
    },
  }),
  route('POST /api/userAuth/signup/anonymous', {
    id: 'signUpAnonymous',
    bodySize: 'small',
    summary: 'Sign in as an anonymous user',
    description:
      'Creates a user without an address. A confirmed address (`update-profile`, then `verify-email`), a linked identity or a passkey makes the account permanent with the same id. Takes fields of `users`, as `signup` does.',
    access: ASKED_KEY,
    headers: REFRESH_MODE,
    openBody: ANONYMOUS_USER,
    bodyIsOptional: true,
    example: { name: 'Visitor' },
    answers: signedIn(201),
    errors: {
      400: ['VALIDATION_FAILED', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
      403: ['ANONYMOUS_OFF'],
      409: ['DOCUMENT_CHANGING'],
    },
    async handle({ app, ctx, project, body }) {
      requireAnonymousOn(project);
      await countAnonymousSignUp(app, ctx, project);
      const { user, tokens } = await signUpAnonymous(app, project, body, clientOf(ctx));
      return { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
    },
  }),
  route('POST /api/userAuth/login', {
    id: 'logIn',
    bodySize: 'small',
    summary: 'Sign in',
    access: ASKED_KEY,
    headers: REFRESH_MODE,
    body: openObject({ email: EMAIL, password: PASSWORD }),
    example: { email: 'ada@example.com', password: 'correct horse battery' },
    answers: signedIn(),
    errors: {
      400: ['VALIDATION_FAILED'],
      401: ['INVALID_CREDENTIALS', 'MFA_REQUIRED'],
      403: ['ACCOUNT_DISABLED', 'QUOTA_EXCEEDED'],
      423: ['ACCOUNT_LOCKED'],
      503: ['BUSY'],
    },
    async handle({ app, ctx, project, body: { email, password } }) {
      const { user, tokens } = await logIn(app, project, { email: normaliseEmail(email), password }, clientOf(ctx));
      return { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
    },
  }),
  route('POST /api/userAuth/refresh-token', {
    id: 'refreshSession',
    bodySize: 'small',
    summary: 'Exchange the refresh token for new tokens',
    description:
      'Each refresh token works once; reusing one ends its session. The cookie is accepted without an `Origin`, from the server’s origin and from listed origins of the project (not `*`). A token sent as a cookie is returned only as a cookie.',
    access: ANY_KEY,
    rate: 'refresh',
    headers: { ...REFRESH_TOKEN, ...REFRESH_MODE },
    answers: { ...plain(object({ success: oneOf(true), ...TOKEN_FIELDS }), 'New tokens'), headers: TOKEN_HEADERS },
    errors: { 401: ['REFRESH_INVALID', 'REFRESH_REUSED', 'COOKIE_NOT_ACCEPTED'] },
    async handle({ app, ctx, project }) {
      const presented = readRefreshToken(app, ctx, project);
      if (presented.by === null && ctx.get('sec-fetch-site') === 'cross-site') throw cookieStayedBehind();
      try {
        const tokens = await refreshSession(app, project, presented.token, clientOf(ctx));
        return { success: true as const, ...deliverTokens(app, ctx, project, tokens, presented.by) };
      } catch (error) {
        if (error instanceof AppError && error.kind === 'unauthenticated') clearRefreshCookie(app, ctx, project);
        throw error;
      }
    },
  }),
  route('POST /api/userAuth/logout', {
    id: 'logOut',
    bodySize: 'small',
    summary: 'Sign out',
    description:
      'Ends the sessions of the refresh token and the bearer token, with their access tokens. The response is the same if neither is sent.',
    access: ANY_KEY,
    rate: 'plain',
    headers: REFRESH_TOKEN,
    answers: done('Signed out'),
    errors: { 401: ['COOKIE_NOT_ACCEPTED'] },
    async handle({ app, ctx, caller, project }) {
      const { token: refreshToken } = readRefreshToken(app, ctx, project);
      await logOut(app, project, { refreshToken, session: sessionOf(caller) });
      clearRefreshCookie(app, ctx, project);
    },
  }),
];

/** Without a word about it, developers look for the cookie in vain: `localhost` and `127.0.0.1` are two sites. */
function cookieStayedBehind(): AppError {
  return unauthenticated(
    'REFRESH_INVALID',
    'No refresh token came with this request. Browsers keep cookies from pages of another site (localhost and 127.0.0.1 are two): call the service by the page’s own host name, with credentials, or send x-refresh-token',
  );
}
