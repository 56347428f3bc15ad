import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';
import { addHeaders } from './replies/reply.js';

/**
 * CORS for browsers (decisions.md 1): preflights never need a key; whether a project admits the origin is settled when
 * its key is read. Pages of other origins are told nothing, by preflights either, about what is below the paths in
 * `except`.
 */
export function allowOrigins({ except }: { except: readonly string[] }): Middleware {
  const isExcepted = (path: string): boolean => except.some((place) => path === place || path.startsWith(`${place}/`));
  const answer = cors({
    origin: (ctx) => ctx.get('Origin'),
    credentials: true,
    allowMethods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    // Whatever headers a preflight asks for: tracing and monitoring add their own, and none of them carries a right.
    exposeHeaders: [
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
    ],
    maxAge: 600,
    // Errors keep the headers anyway, as they are written to the same reply.
    keepHeadersOnError: false,
  });
  return (ctx, next) => {
    if (ctx.req.headers.origin !== undefined && !isExcepted(ctx.path)) return answer(ctx, next) as unknown;
    addHeaders(ctx, 'Vary: Origin\r\n');
    return next();
  };
}

/** Takes back what allowOrigins granted, for an origin that the project does not admit. */
export function withdrawOrigin(ctx: Context): void {
  ctx.remove('Access-Control-Allow-Origin');
  ctx.remove('Access-Control-Allow-Credentials');
  ctx.remove('Access-Control-Expose-Headers');
}
