import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';
import { addHeaders, removeHeaders } from './replies/reply.js';

const EXPOSED = [
  'accept-ranges',
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-range',
  'etag',
  'last-modified',
  'retry-after',
  'ratelimit-limit',
  'ratelimit-policy',
  'ratelimit-remaining',
  'ratelimit-reset',
  'x-refresh-token',
  'x-request-id',
].join(',');

/**
 * CORS for browsers (decisions.md 1): preflights never need a key; whether a project admits the origin is settled when
 * its key is read. Pages of other origins are told nothing, by preflights either, about what is below the paths in
 * `except`.
 */
export function allowOrigins({ except }: { except: readonly string[] }): Middleware {
  const isExcepted = (path: string): boolean => except.some((place) => path === place || path.startsWith(`${place}/`));
  const answerPreflight = cors({
    origin: (ctx) => ctx.get('Origin'),
    credentials: true,
    allowMethods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    // Whatever headers a preflight asks for: tracing and monitoring add their own, and none of them carries a right.
    maxAge: 600,
  });
  return (ctx, next) => {
    const { origin } = ctx.req.headers;
    const isAllowed = origin !== undefined && origin !== '' && !isExcepted(ctx.path);
    if (isAllowed && ctx.method === 'OPTIONS') return answerPreflight(ctx, next) as unknown;
    addHeaders(ctx, 'Vary: Origin\r\n');
    if (isAllowed) addHeaders(ctx, grantOf(origin));
    return next();
  };
}

/** As lines, and not set by their names: replies with those take Node's own way, half as much work again for a get. */
const grantOf = (origin: string): string =>
  `Access-Control-Allow-Origin: ${origin}\r\nAccess-Control-Allow-Credentials: true\r\nAccess-Control-Expose-Headers: ${EXPOSED}\r\n`;

/** Takes back what allowOrigins granted, for an origin that the project does not admit. */
export function withdrawOrigin(ctx: Context): void {
  removeHeaders(ctx, grantOf(ctx.get('Origin')));
}
