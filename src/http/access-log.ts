import type { Observer } from './answer-requests.js';
import type { Logger } from '../platform/observe/logger.js';

/** One line per request with method, path (never the query, which may carry data), status and milliseconds. */
export function accessLog(log: Logger): Observer {
  if (!log.isLevelEnabled('info')) return () => undefined;
  // Looking for secrets costs more than the rest of the line, and these fields are named one by one.
  const plain = log.child({}, { redact: [] });
  return (ctx, ms) => {
    const { requestId } = ctx.state as { requestId: string };
    const rounded = Math.round(ms * 10) / 10;
    plain.info(
      { requestId, method: ctx.req.method, path: ctx.path, status: ctx.res.statusCode, ms: rounded },
      'request',
    );
  };
}
