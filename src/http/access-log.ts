import type { Observer } from './answer-requests.js';
import { requestIdOf } from './requests/request-id.js';
import { openFieldWriter, type Logger } from '../platform/observe/logger.js';

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
