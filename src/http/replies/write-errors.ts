import type { Context } from 'koa';
import { AppError, type ErrorKind } from '../../errors.js';
import { findOutage, isDamage } from '../../platform/database/outages.js';
import type { Logger } from '../../platform/observe/logger.js';
import { pageOfError } from './error-page.js';
import { replyJson } from './reply.js';

const STATUS: Record<ErrorKind, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  missing: 404,
  methodNotAllowed: 405,
  timedOut: 408,
  conflict: 409,
  expired: 410,
  preconditionFailed: 412,
  tooLarge: 413,
  unsatisfiable: 416,
  unprocessable: 422,
  locked: 423,
  overLimit: 429,
  internal: 500,
  unavailable: 503,
  outOfSpace: 507,
  abandoned: 499,
};

/** The body of every error reply (decisions.md 1). */
export interface ErrorBody {
  success: false;
  /** Empty but for `MFA_REQUIRED`. */
  data: Record<string, unknown>;
  message: string;
  error: string;
  code: string;
  requestId: string;
  /** Path of the guide that explains the code. */
  docs: string;
  details?: AppError['details'];
}

/**
 * The one place where an error becomes a reply: an AppError as it says, anything else as a generic 500 that is logged
 * with its cause.
 */
export function writeError(ctx: Context, error: unknown, log: Logger): void {
  const known = error instanceof AppError ? error : (findOutage(error) ?? concealed(error, ctx, log));
  // Rejections because of load are not logged separately: the access log has the 503. Failures below are.
  if ((known.kind === 'unavailable' || known.kind === 'outOfSpace') && known.cause) {
    log.warn({ requestId: ctx.state.requestId as string, err: known.cause }, known.message);
  }
  for (const [name, value] of Object.entries(known.headers ?? {})) ctx.set(name, value);
  if (known.retryAfterSeconds !== undefined) {
    ctx.set('Retry-After', String(Math.max(1, Math.ceil(known.retryAfterSeconds))));
  }
  replyJson(ctx, presentError(known, ctx.state.requestId as string), STATUS[known.kind]);
}

function concealed(error: unknown, ctx: Context, log: Logger): AppError {
  log.error(
    { requestId: ctx.state.requestId as string, method: ctx.method, path: ctx.path, err: error },
    'request failed',
  );
  if (isDamage(error)) return new AppError('internal', 'STORE_DAMAGED', presentDamage(ctx, error.ns ?? null));
  return new AppError('internal', 'INTERNAL', 'Something went wrong on our side. Please try again.');
}

/** Names what is damaged as clients know it: their own documents are stored under ids. */
function presentDamage(ctx: Context, ns: string | null): string {
  const stored = ns?.slice(ns.indexOf('.') + 1) ?? null;
  const { collectionName } = (ctx.params ?? {}) as { collectionName?: string };
  const isDocuments = stored === null || stored.startsWith('documents_');
  const name = isDocuments ? (collectionName ?? 'documents') : stored;
  return `A part of "${name}" is damaged in the store and cannot be read. The operator of this service can repair it.`;
}

export function presentError(error: AppError, requestId: string): ErrorBody {
  const body: ErrorBody = {
    success: false,
    data: error.data ?? {},
    message: error.message,
    error: error.message,
    code: error.code,
    requestId,
    docs: pageOfError(error.code),
  };
  if (error.details) body.details = error.details;
  return body;
}
