import type { Context } from 'koa';
import { presentDuration } from '../../../config/setting-readers.js';
import type { App } from '../../../app.js';
import { clientSignal } from '../../../http/requests/client-signal.js';
import { isOverTls, setCookie } from '../../../http/replies/set-cookie.js';
import { type ObjectOf, text, TEXT } from '../../../platform/schema/schema.js';
import type { Project } from '../../projects/project.js';
import type { Client, Tokens } from './open-session.js';
import { parameter } from '../../../http/routes/route.js';
import { unauthenticated } from '../../../errors.js';
import { admitsOrigin, originOf } from '../../access/require-key.js';
import { isOwnOrigin } from '../../access/own-origin.js';

/**
 * Refuses a cookie that a page of another site may have caused the browser to send: it counts without an `Origin`, for
 * the service's own, and for one that the project's allowlist names (decisions.md 2). The cookie stays as it is. 401
 * COOKIE_NOT_ACCEPTED with the command that changes it.
 */
function requireCookieOrigin(app: App, ctx: Context, project: Project): void {
  const origin = ctx.get('Origin');
  if (origin === '' && ctx.get('sec-fetch-site') === 'cross-site') {
    throw notAccepted('The refresh cookie does not count for a request of another site');
  }
  if (origin === '' || isOwnOrigin(app, ctx, origin)) return;
  const named = project.allowedDomains.filter((entry) => entry !== '*');
  const admitsAll = named.length < project.allowedDomains.length;
  if (admitsAll && app.config.crossSiteCookies) {
    throw notAccepted(
      `With BSVC_CROSS_SITE_COOKIES the refresh cookie does not count for pages of other origins while the project admits *: ${nameThem(project, named, origin)}`,
    );
  }
  if (admitsOrigin(named, origin)) return;
  throw notAccepted(
    `The refresh cookie counts only for origins that the project names, not by *: ${nameThem(project, named, origin)}`,
  );
}

const MAX_SHOWN = 200;

/** The command that lists exactly the origins named so far, and this one. */
function nameThem(project: Project, named: readonly string[], origin: string): string {
  const shown = URL.canParse(origin) ? origin.slice(0, MAX_SHOWN) : 'https://app.example.com';
  const entries = [...new Set([...named.slice(0, 10), shown])];
  return `bsvc project update ${project.name} ${entries.map((entry) => `--allowed-domain ${JSON.stringify(entry)}`).join(' ')}`;
}

function notAccepted(message: string): Error {
  return unauthenticated('COOKIE_NOT_ACCEPTED', message);
}

/** The token part of a signup, login or refresh reply. */
export const TOKEN_FIELDS = {
  accessToken: TEXT,
  token: text({ deprecated: true, description: 'The same as `accessToken`.' }),
  expiresIn: text({ examples: ['15m'] }),
  'refreshToken?': text({
    description: 'With `x-refresh-token-mode: header`; in social sign-in unless it is `cookie`.',
  }),
};

export const TOKEN_HEADERS = {
  'x-refresh-token': 'The refresh token, unless `x-refresh-token-mode` is `cookie`',
  'Set-Cookie': 'The refresh token for browsers, as the HTTP-only cookie `bsvc_rt_<project id>`',
};

export const REFRESH_TOKEN = {
  'x-refresh-token': parameter(
    'The refresh token; browsers send it as the cookie `bsvc_rt_<project id>` instead',
    TEXT,
  ),
};

export const REFRESH_MODE = {
  'x-refresh-token-mode': parameter(
    '`header`: also return the refresh token in the body. `cookie`: only in the cookie. Other values are ignored.',
    TEXT,
  ),
};

const COOKIE_PATH = '/api/userAuth';
const REFRESH_HEADER = 'x-refresh-token';

/**
 * Hands the refresh token over as cookie and header, in the body too when asked for, and answers the reply's part
 * (decisions.md 2). In place of a token that came `by` cookie it is a cookie alone: no script may read what was kept
 * from scripts.
 */
export function deliverTokens(
  app: App,
  ctx: Context,
  project: Project,
  tokens: Tokens,
  by: PresentedToken['by'] = 'header',
): ObjectOf<typeof TOKEN_FIELDS> {
  const mode = by === 'cookie' ? 'cookie' : ctx.get('x-refresh-token-mode').toLowerCase();
  setRefreshCookie(app, ctx, project, tokens.refreshToken, app.config.refreshTokenTtlMs);
  if (mode !== 'cookie') ctx.set(REFRESH_HEADER, tokens.refreshToken);
  ctx.set('Cache-Control', 'no-store');
  return {
    accessToken: tokens.accessToken,
    token: tokens.accessToken,
    expiresIn: presentDuration(app.config.accessTokenTtlMs),
    ...(mode === 'header' && { refreshToken: tokens.refreshToken }),
  };
}

const MAX_USER_AGENT = 200;

/** The client of a request. */
export function clientOf(ctx: Context): Client {
  const userAgent = ctx.get('user-agent').slice(0, MAX_USER_AGENT);
  return { ip: ctx.ip, userAgent, depth: originOf(ctx).depth, gone: clientSignal(ctx) };
}

/** The refresh token a request carries, empty when there is none, and how it came. */
export interface PresentedToken {
  token: string;
  by: 'header' | 'cookie' | null;
}

/**
 * The refresh token of a request: the header's before the cookie's. 401 COOKIE_NOT_ACCEPTED for a cookie from an origin
 * where it does not count.
 */
export function readRefreshToken(app: App, ctx: Context, project: Project): PresentedToken {
  const header = ctx.get(REFRESH_HEADER);
  if (header !== '') return { token: header, by: 'header' };
  const cookie = ctx.cookies.get(cookieName(project)) ?? '';
  if (cookie === '') return { token: '', by: null };
  requireCookieOrigin(app, ctx, project);
  return { token: cookie, by: 'cookie' };
}

export function clearRefreshCookie(app: App, ctx: Context, project: Project): void {
  setRefreshCookie(app, ctx, project, '', 0);
}

const cookieName = (project: Project): string => `bsvc_rt_${project._id.toHexString()}`;

function setRefreshCookie(app: App, ctx: Context, project: Project, value: string, maxAgeMs: number): void {
  const sameSite = app.config.crossSiteCookies && isOverTls(app, ctx) ? 'None' : 'Lax';
  setCookie(app, ctx, { name: cookieName(project), value, path: COOKIE_PATH, maxAgeMs, sameSite });
}
