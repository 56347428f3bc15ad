import type { Observer } from './answer-requests.js';
import { requestIdOf } from './requests/request-id.js';
import { openFieldWriter, type Logger } from '../platform/observe/logger.js';
import type { Metrics } from '../platform/observe/metrics.js';
import { matchedRoute } from './routes/mount-routes.js';
import type { Middleware } from 'koa';
import type { Telemetry } from '../platform/observe/telemetry.js';

/** One line per request with method, path (never the query, which may carry data), status and milliseconds. */
export function accessLog(log: Logger): Observer {
  const write = openFieldWriter(log);
  if (!write) return () => undefined;
  return (ctx, ms) => {
    const { req, res, path } = ctx;
    const rounded = Math.round(ms * 10) / 10;
    // Id and method hold nothing that JSON would escape: the one is checked or our own, the other of Node's list.
    write(
      `"requestId":"${requestIdOf(ctx)}","method":"${req.method}","path":${JSON.stringify(path)},"status":${res.statusCode},"ms":${rounded},"msg":"request"`,
    );
  };
}

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
