import type { Context, Middleware } from 'koa';
import { AppError, type ErrorKind } from '../errors.js';
import { findOutage } from '../platform/database.js';
import type { Logger } from '../platform/logger.js';

const STATUS: Record<ErrorKind, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  missing: 404,
  methodNotAllowed: 405,
  conflict: 409,
  tooLarge: 413,
  unsatisfiable: 416,
  unprocessable: 422,
  locked: 423,
  overLimit: 429,
  internal: 500,
  unavailable: 503,
};

/** The body of every error reply (decisions.md 1). */
export interface ErrorBody {
  success: false;
  data: Record<string, never>;
  message: string;
  error: string;
  code: string;
  requestId: string;
  details?: AppError['details'];
}

/** The one place where an error becomes a reply: an AppError as it says, anything else as a generic 500 that is logged with its cause. */
export function writeErrors(log: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const known = error instanceof AppError ? error : (findOutage(error) ?? concealed(error, ctx, log));
      // Turning somebody away because of load is no event of its own: the access log has the 503. What failed below is.
      if (known.kind === 'unavailable' && known.cause)
        log.warn({ requestId: ctx.state.requestId as string, err: known.cause }, known.message);
      writeError(ctx, known);
    }
  };
}

function concealed(error: unknown, ctx: Context, log: Logger): AppError {
  log.error(
    { requestId: ctx.state.requestId as string, method: ctx.method, path: ctx.path, err: error },
    'request failed',
  );
  return new AppError('internal', 'INTERNAL', 'Something went wrong on our side. Please try again.');
}

function writeError(ctx: Context, error: AppError): void {
  ctx.status = STATUS[error.kind];
  for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value);
  if (error.retryAfterSeconds !== undefined)
    ctx.set('Retry-After', String(Math.max(1, Math.ceil(error.retryAfterSeconds))));
  ctx.body = presentError(error, ctx.state.requestId as string);
}

export function presentError(error: AppError, requestId: string): ErrorBody {
  const body: ErrorBody = {
    success: false,
    data: {},
    message: error.message,
    error: error.message,
    code: error.code,
    requestId,
  };
  if (error.details) body.details = error.details;
  return body;
}
