import type { Middleware } from 'koa';
import type { Telemetry } from '../platform/observe/telemetry.js';
import { matchedRoute } from './routes/mount-routes.js';

const FAILED_FROM = 500;

/**
 * A span for every request, as a part of its caller's trace when it carries `traceparent`. Named after the route's
 * pattern, like its metrics.
 */
export function traceRequests(telemetry: Telemetry): Middleware {
  return (ctx, next) => {
    const { method = '', headers } = ctx.req;
    const attributes = { 'http.request.method': method, 'url.path': ctx.path };
    return telemetry.span(method, { kind: 'server', attributes, headers }, async (span) => {
      await next();
      const route = matchedRoute(ctx);
      if (route !== undefined) {
        span.updateName(`${method} ${route}`);
        span.setAttribute('http.route', route);
      }
      const status = ctx.res.statusCode;
      span.setAttribute('http.response.status_code', status);
      span.setAttribute('bsvc.request_id', (ctx.state as { requestId: string }).requestId);
      if (status >= FAILED_FROM) span.setAttribute('error.type', String(status));
    });
  };
}
