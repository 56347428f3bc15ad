import type Router from '@koa/router';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { readJson } from '../../http/requests/read-body.js';
import { callerOf, requireKey, requireQueryKey } from '../access/require-key.js';
import { validationFailed } from '../documents/reply/problems.js';
import { isOwnOrigin } from './sessions/cookie-origin.js';
import { readTexts } from './credentials.js';
import { clientOf, deliverTokens } from './sessions/deliver-tokens.js';
import { presentUser } from './accounts/present-user.js';
import {
  attemptCookie,
  exchangeSocialCode,
  finishSocialLogin,
  startSocialLogin,
  type ApplicationChecks,
} from './social/social-login.js';

const SOCIAL_PATH = '/api/userAuth/social';

/**
 * Sign-in through Google, GitHub or any OpenID issuer (decisions.md 2). `start` and `callback` are opened by the
 * browser itself and answer with redirects.
 */
export function addSocialRoutes(router: Router, app: App): void {
  router.get('/social/:provider/start', requireQueryKey(app), async (ctx) => {
    const redirect = ctx.query.redirect;
    const { url, cookie } = await startSocialLogin(app, callerOf(ctx).project, {
      provider: ctx.params.provider!,
      redirectUrl: typeof redirect === 'string' ? redirect : null,
      callback: callbackAddress(app, ctx, ctx.params.provider!),
      ...readChecks(ctx),
    });
    if (cookie) setCookie(app, ctx, cookie.name, cookie.value, cookie.maxAgeMs);
    sendBrowser(ctx, url);
  });

  router.get('/social/:provider/callback', async (ctx) => {
    const query = new URLSearchParams(ctx.querystring);
    const name = attemptCookie(query.get('state') ?? '');
    const browser = mayUseCookie(app, ctx) ? (ctx.cookies.get(name) ?? '') : '';
    setCookie(app, ctx, name, '', 0);
    sendBrowser(ctx, await finishSocialLogin(app, { provider: ctx.params.provider!, query, browser }));
  });

  router.post('/social/exchange', requireKey(app), readJson(), async (ctx) => {
    const { project } = callerOf(ctx);
    const { rtCode } = readTexts(ctx.request.body, ['rtCode']);
    const codeVerifier = readVerifier(ctx.request.body);
    const { user, tokens } = await exchangeSocialCode(app, project, { rtCode, codeVerifier }, clientOf(ctx));
    ctx.body = { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
  });
}

/** The browser itself comes back from the provider; a request that a page of another origin makes is no such return. */
function mayUseCookie(app: App, ctx: Context): boolean {
  const origin = ctx.get('Origin');
  // A browser that was redirected may send `null`.
  return origin === '' || origin === 'null' || isOwnOrigin(app, ctx, origin);
}

const MAX_STATE_CHARACTERS = 512;
/** SHA-256 as base64url. */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** 400 INVALID_QUERY for what could not be given back or demanded later exactly as it was sent. */
function readChecks(ctx: Context): ApplicationChecks {
  const { state, code_challenge: challenge, code_challenge_method: method } = ctx.query;
  if (state !== undefined && (typeof state !== 'string' || state.length > MAX_STATE_CHARACTERS))
    throw invalid('INVALID_QUERY', `state must be given once and have at most ${MAX_STATE_CHARACTERS} characters`);
  if (challenge !== undefined && (typeof challenge !== 'string' || !CHALLENGE.test(challenge)))
    throw invalid('INVALID_QUERY', 'code_challenge must be a SHA-256 as base64url: 43 characters');
  if (method !== undefined && (method !== 'S256' || challenge === undefined))
    throw invalid('INVALID_QUERY', 'code_challenge_method must be S256 and stand beside a code_challenge');
  return { appState: state ?? null, codeChallenge: challenge ?? null };
}

function readVerifier(body: unknown): string | null {
  const { code_verifier: verifier } = body as Record<string, unknown>;
  if (verifier === undefined || verifier === null) return null;
  if (typeof verifier === 'string' && VERIFIER.test(verifier)) return verifier;
  const message = 'code_verifier must be 43 to 128 of A-Z a-z 0-9 - . _ ~';
  throw validationFailed([{ field: 'code_verifier', rule: 'format', message }]);
}

function callbackAddress(app: App, ctx: Context, provider: string): string {
  const base = app.config.publicUrl ?? `${ctx.protocol}://${ctx.host}`;
  return `${base}${SOCIAL_PATH}/${provider}/callback`;
}

function sendBrowser(ctx: Context, url: string): void {
  ctx.status = 302;
  ctx.set('Location', url);
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Referrer-Policy', 'no-referrer');
  ctx.body = '';
}

function setCookie(app: App, ctx: Context, name: string, value: string, maxAgeMs: number): void {
  const secure = app.config.publicUrl?.startsWith('https:') || ctx.secure ? '; Secure' : '';
  ctx.append(
    'Set-Cookie',
    `${name}=${value}; Path=${SOCIAL_PATH}; Max-Age=${Math.floor(maxAgeMs / 1000)}; HttpOnly; SameSite=Lax${secure}`,
  );
}
