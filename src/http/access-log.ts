import type { Middleware } from 'koa';
import type { Logger } from '../platform/logger.js';

/** One line per request with method, path (never the query, which may carry data), status and milliseconds. */
export function accessLog(log: Logger): Middleware {
  if (!log.isLevelEnabled('info')) return (_ctx, next) => next();
  return async (ctx, next) => {
    const started = performance.now();
    try {
      await next();
    } finally {
      const ms = Math.round((performance.now() - started) * 10) / 10;
      log.info(
        { requestId: ctx.state.requestId as string, method: ctx.method, path: ctx.path, status: ctx.status, ms },
        'request',
      );
    }
  };
}
