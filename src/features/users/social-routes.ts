import type { Context } from 'koa';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { admission } from '../../http/admission/admission.js';
import { setCookie } from '../../http/replies/set-cookie.js';
import { naming, ok, own, parameter, PUBLIC, route, type Route } from '../../http/routes/route.js';
import { MAX_PASSWORD_BYTES } from '../../platform/schema/text-forms.js';
import { object, oneOf, openObject, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { ASKED_KEY, KEY_IN_QUERY } from '../access/key-access.js';
import { isOwnOrigin, ownAddress } from '../access/own-origin.js';
import { IDENTITY, presentUser } from './accounts/present-user.js';
import { presentIdentity } from './accounts/sign-in-methods.js';
import { STEP_UP_FIELDS, STEP_UP_ERRORS, requireStepUp } from './step-up/require-step-up.js';
import { clientOf, deliverTokens, REFRESH_MODE } from './sessions/deliver-tokens.js';
import { signedIn } from './sign-in/complete-sign-in.js';
import { SIGNED_IN } from './sessions/signed-in-access.js';
import {
  attemptCookie,
  exchangeSocialCode,
  finishSocialLogin,
  requireAttempt,
  startSocialLogin,
  finishLink,
} from './social/social-login.js';

const SOCIAL_PATH = '/api/userAuth/social';
const PROVIDER = {
  provider: naming(
    'Name of a provider that the project has set up: `google`, `github` or its own',
    'PROVIDER_NOT_FOUND',
  ),
};

const CHALLENGE = '^[A-Za-z0-9_-]{43}$';
const CODE = openObject({
  rtCode: text({ minLength: 1, maxBytes: MAX_PASSWORD_BYTES, wellFormed: true }),
  'code_verifier?': {
    ...orNull(text({ pattern: '^[A-Za-z0-9._~-]{43,128}$' })),
    description: 'Required if the start had a `code_challenge`.',
  },
});
const FORM_TYPE = 'application/x-www-form-urlencoded';
const MAX_FORM_BYTES = 16 * 1024;
/** What the check of a sign-in reads. */
const FORM_FIELDS: readonly string[] = ['code', 'error', 'iss', 'state'];

/** Sign-in by a provider. */
export const SOCIAL_ROUTES: readonly Route[] = [
  /** Opened by the browser itself, which is redirected (decisions.md 2). */
  route('GET /api/userAuth/social/:provider/start', {
    id: 'startSocialLogin',
    summary: 'Send the browser to a sign-in provider',
    description: 'Open it in the browser, which returns to `redirect` with `?rtCode=…` or `?error=…`.',
    access: KEY_IN_QUERY,
    params: PROVIDER,
    query: {
      redirect: parameter('Return URL: one of the provider’s redirect URLs. Default: the first', TEXT),
      state: parameter(
        'Returned with `rtCode` or `error`, to verify that your application started the sign-in',
        text({ maxLength: 512 }),
      ),
      code_challenge: parameter(
        'SHA-256 of a `code_verifier` in base64url, which the exchange then requires',
        text({ pattern: CHALLENGE }),
      ),
      code_challenge_method: parameter('Only S256', oneOf('S256')),
    },
    answers: own(302, 'To the provider', undefined, { Location: 'The provider’s page' }),
    errors: { 400: ['REDIRECT_NOT_ALLOWED', 'INVALID_QUERY'], 403: ['QUOTA_EXCEEDED'] },
    async handle({ app, ctx, project, params: { provider }, query }) {
      const { redirect, state, code_challenge: challenge, code_challenge_method: method } = query;
      if (method !== undefined && challenge === undefined) {
        throw invalid('INVALID_QUERY', 'code_challenge_method requires code_challenge');
      }
      const { url, cookie } = await startSocialLogin(app, project, {
        provider,
        redirectUrl: redirect ?? null,
        callback: callbackAddress(app, ctx, provider),
        appState: state ?? null,
        codeChallenge: challenge ?? null,
      });
      if (cookie) setCookie(app, ctx, { ...cookie, path: SOCIAL_PATH, sameSite: 'Lax' });
      sendBrowser(ctx, url);
    },
  }),
  route('GET /api/userAuth/social/:provider/callback', {
    id: 'finishSocialLogin',
    summary: 'Callback of the sign-in provider',
    access: PUBLIC,
    params: PROVIDER,
    // Each provider adds its own: the check of the identity reads them all.
    ownQuery: {
      state: parameter('Identifies the sign-in', TEXT),
      code: parameter('From the provider', TEXT),
      error: parameter('From the provider', TEXT),
    },
    answers: own(302, 'Back to the application', undefined, {
      Location: 'The address with `rtCode` or `error`; with `#token=` too where the provider’s settings say so',
    }),
    errors: { 400: ['SOCIAL_STATE_INVALID'], 403: ['QUOTA_EXCEEDED'] },
    async handle({ app, ctx, params: { provider } }) {
      const query = new URLSearchParams(ctx.querystring);
      const name = attemptCookie(query.get('state') ?? '');
      const browser = mayUseCookie(app, ctx) ? (ctx.cookies.get(name) ?? '') : '';
      setCookie(app, ctx, { name, value: '', path: SOCIAL_PATH, maxAgeMs: 0, sameSite: 'Lax' });
      sendBrowser(ctx, await finishSocialLogin(app, { provider, query, browser }, clientOf(ctx)));
    },
  }),
  route('POST /api/userAuth/social/:provider/callback', {
    id: 'passOnSocialForm',
    summary: 'Callback of sign-in providers that post a form, such as Apple',
    description: 'Redirects to the same URL with GET.',
    access: PUBLIC,
    params: PROVIDER,
    ownBody: { content: { [FORM_TYPE]: { type: 'object' } }, isRead: true },
    answers: own(303, 'To the same address by GET', undefined, { Location: 'The address with the fields of the form' }),
    errors: { 400: ['SOCIAL_STATE_INVALID', 'INVALID_BODY'], 408: ['REQUEST_TIMEOUT'], 413: ['BODY_TOO_LARGE'] },
    async handle({ app, ctx, params: { provider } }) {
      const form = new URLSearchParams((await admission(app).read(ctx, MAX_FORM_BYTES, 'INVALID_BODY')).toString());
      await requireAttempt(app, provider, form.get('state') ?? '');
      // The browser's cookie is not sent with a form of another site, but with the redirect that follows.
      const passed = [...form].filter(([name]) => FORM_FIELDS.includes(name));
      sendBrowser(ctx, `${callbackAddress(app, ctx, provider)}?${new URLSearchParams(passed).toString()}`, 303);
    },
  }),
  route('POST /api/userAuth/social/:provider/id-token', {
    id: 'logInByIdToken',
    bodySize: 'small',
    summary: 'Sign in with an id token from a native app',
    description:
      'The token must be for the client id or one of `appClientIds`, and works once. Give the provider the SHA-256, in hex, of the `nonce` that you send here.',
    access: ASKED_KEY,
    params: PROVIDER,
    headers: REFRESH_MODE,
    body: openObject({
      idToken: text({ minLength: 1, maxLength: 8192, wellFormed: true }),
      nonce: text({ minLength: 1, maxLength: 256, wellFormed: true }),
    }),
    example: { idToken: 'from the provider', nonce: 'kept by the app' },
    answers: signedIn(),
    errors: {
      400: ['VALIDATION_FAILED'],
      401: ['ID_TOKEN_INVALID', 'MFA_REQUIRED'],
      403: ['ACCOUNT_DISABLED', 'EMAIL_UNVERIFIED', 'PROFILE_INCOMPLETE'],
      503: ['PROVIDER_UNAVAILABLE'],
    },
    async handle({ app, ctx, project, params: { provider }, body: { idToken, nonce } }) {
      // Loaded when the first token comes, with the library that checks it.
      const { logInByIdToken } = await import('./social/id-token.js');
      const { user, tokens } = await logInByIdToken(app, project, { provider, idToken, nonce }, clientOf(ctx));
      return { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
    },
  }),
  route('POST /api/userAuth/social/:provider/link', {
    id: 'startSocialLink',
    bodySize: 'small',
    summary: 'Start linking a provider to the account',
    description:
      'Send the browser to `url`. It returns to `redirect` with `?rtCode=…`, which you post to `social/link`. Needs re-authentication within the last ten minutes.',
    access: SIGNED_IN,
    params: PROVIDER,
    body: openObject({
      ...STEP_UP_FIELDS,
      'redirect?': text({ maxLength: 500, description: 'One of the provider’s redirect URLs. Default: the first.' }),
      'state?': text({ maxLength: 512, description: 'Returned with `rtCode` or `error`.' }),
      'code_challenge?': text({
        pattern: CHALLENGE,
        description: 'SHA-256 of a `code_verifier` in base64url, which `social/link` then requires.',
      }),
    }),
    bodyIsOptional: true,
    example: { redirect: 'https://shop.example/account', currentPassword: 'correct horse battery' },
    answers: ok(object({ url: TEXT }), 'Send the browser there'),
    errors: { ...STEP_UP_ERRORS, 400: [...STEP_UP_ERRORS[400], 'REDIRECT_NOT_ALLOWED'] },
    async handle({ app, ctx, project, user, session, params: { provider }, body }) {
      const { redirect, state, code_challenge: challenge, ...proof } = body;
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, proof);
      ctx.set('Cache-Control', 'no-store');
      const wayOut = {
        provider,
        redirectUrl: redirect ?? null,
        callback: callbackAddress(app, ctx, provider),
        appState: state ?? null,
        codeChallenge: challenge ?? null,
      };
      return { url: (await startSocialLogin(app, project, wayOut, user)).url };
    },
  }),
  route('POST /api/userAuth/social/link', {
    id: 'finishSocialLink',
    bodySize: 'small',
    summary: 'Finish linking a provider to the account',
    description: 'The addresses of identity and account may differ.',
    access: SIGNED_IN,
    body: CODE,
    example: { rtCode: 'the value from the address' },
    answers: ok(IDENTITY, 'Identity linked'),
    errors: { 400: ['VALIDATION_FAILED', 'SOCIAL_CODE_INVALID'], 409: ['IDENTITY_TAKEN', 'CHANGED_MEANWHILE'] },
    async handle({ app, project, user, body: { rtCode, code_verifier: codeVerifier = null } }) {
      return presentIdentity(await finishLink(app, project, user, { rtCode, codeVerifier }));
    },
  }),
  route('POST /api/userAuth/social/exchange', {
    id: 'exchangeSocialCode',
    bodySize: 'small',
    summary: 'Exchange a social sign-in code for tokens',
    description: 'The refresh token is also in the body, unless `x-refresh-token-mode` is `cookie`.',
    access: ASKED_KEY,
    headers: REFRESH_MODE,
    body: CODE,
    example: { rtCode: 'the value from the address' },
    answers: signedIn(),
    errors: {
      400: ['VALIDATION_FAILED'],
      401: ['SOCIAL_CODE_INVALID', 'INVALID_CREDENTIALS', 'MFA_REQUIRED'],
      403: ['QUOTA_EXCEEDED'],
    },
    async handle({ app, ctx, project, body: { rtCode, code_verifier: codeVerifier = null } }) {
      const { user, tokens } = await exchangeSocialCode(app, project, { rtCode, codeVerifier }, clientOf(ctx));
      const delivered = deliverTokens(app, ctx, project, tokens);
      // In the body unless it is for the cookie alone: the hosted service's SDK reads it there and does not ask for it.
      const isInBody = ctx.get('x-refresh-token-mode').toLowerCase() !== 'cookie';
      return { user: presentUser(user), ...delivered, ...(isInBody && { refreshToken: tokens.refreshToken }) };
    },
  }),
];

/** The browser itself comes back from the provider; a request that a page of another origin makes is no such return. */
function mayUseCookie(app: App, ctx: Context): boolean {
  const origin = ctx.get('Origin');
  // A browser that was redirected may send `null`.
  return origin === '' || origin === 'null' || isOwnOrigin(app, ctx, origin);
}

function callbackAddress(app: App, ctx: Context, provider: string): string {
  return `${ownAddress(app, ctx)}${SOCIAL_PATH}/${provider}/callback`;
}

function sendBrowser(ctx: Context, url: string, status = 302): void {
  ctx.status = status;
  ctx.set('Location', url);
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Referrer-Policy', 'no-referrer');
  ctx.body = '';
}
