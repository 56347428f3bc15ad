import type { Observer } from './answer-requests.js';
import type { Metrics } from '../platform/observe/metrics.js';
import { matchedRoute } from './routes/mount-routes.js';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** The label of requests that no route took: their paths are the client's invention. */
const NO_ROUTE = 'none';

/** Counts every request with its time, under its route's pattern, so that there are never more series than routes. */
export function measureRequests(metrics: Metrics): Observer {
  return (ctx, ms) => {
    const method = ctx.req.method!;
    metrics.request(
      METHODS.has(method) ? method : 'other',
      matchedRoute(ctx) ?? NO_ROUTE,
      ctx.res.statusCode,
      ms / 1000,
    );
  };
}
