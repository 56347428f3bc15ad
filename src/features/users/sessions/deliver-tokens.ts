import type { Context } from 'koa';
import { presentDuration } from '../../../config/setting-readers.js';
import type { App } from '../../../app.js';
import { clientSignal } from '../../../http/requests/client-signal.js';
import { isOverTls, setCookie } from '../../../http/replies/set-cookie.js';
import type { ObjectOf } from '../../../platform/schema/schema.js';
import type { Project } from '../../projects/project.js';
import { requireCookieOrigin } from './cookie-origin.js';
import type { TOKEN_FIELDS } from './describe-tokens.js';
import type { Client, Tokens } from './open-session.js';

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
  return { ip: ctx.ip, userAgent: ctx.get('user-agent').slice(0, MAX_USER_AGENT), gone: clientSignal(ctx) };
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
