import type Router from '@koa/router';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import { readJson } from '../../http/read-body.js';
import { callerOf, requireKey, requireQueryKey } from '../access/require-key.js';
import { readTexts } from './credentials.js';
import { clientOf, deliverTokens } from './deliver-tokens.js';
import { presentUser } from './present-user.js';
import { attemptCookie, exchangeSocialCode, finishSocialLogin, startSocialLogin } from './social-login.js';

const SOCIAL_PATH = '/api/userAuth/social';

/** Sign-in through Google, GitHub or any OpenID issuer (decisions.md 2). `start` and `callback` are opened by the browser itself and answer with redirects. */
export function addSocialRoutes(router: Router, app: App): void {
  router.get('/social/:provider/start', requireQueryKey(app), async (ctx) => {
    const redirect = ctx.query.redirect;
    const { url, cookie } = await startSocialLogin(app, callerOf(ctx).project, {
      provider: ctx.params.provider!,
      redirectUrl: typeof redirect === 'string' ? redirect : null,
      callback: callbackAddress(app, ctx, ctx.params.provider!),
    });
    if (cookie) setCookie(app, ctx, cookie.name, cookie.value, cookie.maxAgeMs);
    sendBrowser(ctx, url);
  });

  router.get('/social/:provider/callback', async (ctx) => {
    const query = new URLSearchParams(ctx.querystring);
    const name = attemptCookie(query.get('state') ?? '');
    const browser = ctx.cookies.get(name) ?? '';
    setCookie(app, ctx, name, '', 0);
    sendBrowser(ctx, await finishSocialLogin(app, { provider: ctx.params.provider!, query, browser }));
  });

  router.post('/social/exchange', requireKey(app), readJson(), async (ctx) => {
    const { project } = callerOf(ctx);
    const { rtCode } = readTexts(ctx.request.body, ['rtCode']);
    const { user, tokens } = await exchangeSocialCode(app, project, rtCode, clientOf(ctx));
    ctx.body = { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
  });
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
