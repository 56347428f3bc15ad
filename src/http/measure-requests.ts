import type { Middleware } from 'koa';
import type { Metrics } from '../platform/metrics.js';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** Of requests that no route took: their paths are the client's invention. */
const NO_ROUTE = 'none';

/** Counts every request with its time, under its route's pattern, so that there are never more series than routes. */
export function measureRequests(metrics: Metrics): Middleware {
  return async (ctx, next) => {
    const startedMs = performance.now();
    try {
      await next();
    } finally {
      const route = (ctx as { _matchedRoute?: unknown })._matchedRoute;
      metrics.request(
        METHODS.has(ctx.method) ? ctx.method : 'other',
        typeof route === 'string' ? route : NO_ROUTE,
        ctx.status,
        (performance.now() - startedMs) / 1000,
      );
    }
  };
}
