import type { Context } from 'koa';
import type { App } from '../../app.js';
import { forbidden, unauthenticated } from '../../errors.js';
import { isSameSecret } from '../../platform/ids.js';
import { setCookie } from '../../http/replies/set-cookie.js';
import { isOperatorTokenForm } from './operator.js';
import { isOwnName, isOwnOrigin } from './own-origin.js';

/** Holds the token of an operator who signed in to the console. Scripts cannot read it. */
const CONSOLE_COOKIE = 'bsvc_console';

/** Sent by the console with every request but downloads; a page of another origin cannot without a preflight. */
const CONSOLE_HEADER = 'x-bsvc-console';

export interface PresentedOperatorToken {
  token: string;
  by: 'header' | 'cookie';
}

/**
 * The operator's token that a request carries: the header's, else the cookie's. 401 AUTH_REQUIRED without any,
 * TOKEN_INVALID for a header of another form; 403 FOREIGN_REQUEST for a cookie that the console did not send.
 */
export function readOperatorToken(app: Pick<App, 'config'>, ctx: Context): PresentedOperatorToken {
  const header = ctx.get('authorization');
  if (header !== '') {
    const token = /^Bearer ([^\s]+)$/i.exec(header)?.[1];
    if (!token) throw invalidToken();
    return { token, by: 'header' };
  }
  const cookie = ctx.cookies.get(CONSOLE_COOKIE) ?? '';
  if (cookie === '') {
    throw unauthenticated('AUTH_REQUIRED', 'This needs an operator: send Authorization: Bearer <token>');
  }
  requireConsole(app, ctx);
  return { token: cookie, by: 'cookie' };
}

/** True if the request carries something in the form of an operator's token; says nothing about its being one. */
export function presentsOperatorToken(ctx: Context): boolean {
  return isOperatorTokenForm(presentedOperatorToken(ctx));
}

/** The token of header or cookie as it is, empty without any. */
export function presentedOperatorToken(ctx: Context): string {
  const header = ctx.get('authorization');
  return header === '' ? (ctx.cookies.get(CONSOLE_COOKIE) ?? '') : withoutScheme(header);
}

/** True if the request carries `BSVC_ADMIN_TOKEN`. */
export function presentsAdminToken({ config: { adminToken } }: Pick<App, 'config'>, ctx: Context): boolean {
  return adminToken !== null && isSameSecret(withoutScheme(ctx.get('authorization')), adminToken);
}

const withoutScheme = (header: string): string => header.replace(/^Bearer /i, '');

/**
 * Refuses what a page of another site may have caused the browser to send with the cookie: 403 FOREIGN_REQUEST. Nothing
 * is kept for it, so it holds behind balancers too. Browsers say where a request comes from (`Sec-Fetch-Site`, or
 * `Origin` where that is not sent), and for the console's header they would ask first, which is never granted.
 */
export function requireConsole(app: Pick<App, 'config'>, ctx: Context): void {
  if (app.config.publicUrl === null && !isOwnName(ctx.hostname)) {
    throw forbidden(
      'FOREIGN_REQUEST',
      'The console does not recognize this host name. Set BSVC_PUBLIC_URL to the address that you open',
    );
  }
  const site = ctx.get('sec-fetch-site');
  const origin = ctx.get('origin');
  const isMarked = ctx.get(CONSOLE_HEADER) === '1';
  const reads = ctx.method === 'GET' || ctx.method === 'HEAD';
  const isOwn =
    site !== '' ? site === 'same-origin' : origin !== '' ? isOwnOrigin(app, ctx, origin) : reads && isMarked;
  if (!isOwn || !(reads || isMarked)) {
    throw forbidden(
      'FOREIGN_REQUEST',
      'The console cookie works only for requests of the console. Scripts must send Authorization: Bearer <token>',
    );
  }
}

export function setConsoleCookie(app: Pick<App, 'config'>, ctx: Context, token: string, maxAgeMs: number): void {
  setCookie(app, ctx, { name: CONSOLE_COOKIE, value: token, path: '', maxAgeMs, sameSite: 'Strict' });
}

export function clearConsoleCookie(app: Pick<App, 'config'>, ctx: Context): void {
  setConsoleCookie(app, ctx, '', 0);
}

export function invalidToken(): Error {
  return unauthenticated('TOKEN_INVALID', 'The operator’s token is not valid');
}
