export type ErrorKind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'missing'
  | 'methodNotAllowed'
  | 'timedOut'
  | 'conflict'
  | 'expired'
  | 'preconditionFailed'
  | 'tooLarge'
  | 'unsatisfiable'
  | 'unprocessable'
  | 'locked'
  | 'overLimit'
  | 'internal'
  | 'unavailable'
  | 'outOfSpace'
  | 'abandoned';

/** One broken rule of one field, as it appears under `details` of a validation error. */
export interface FieldProblem {
  field: string;
  rule: string;
  message: string;
  /** Of a stream: which subscription, counted from 0. */
  n?: number;
  /** Of a batch: which operation, counted from 0, and its code. */
  index?: number;
  code?: string;
  /** Of a proof that is wanted: the fields by which it can be given. */
  methods?: string[];
  /** Of a rule that refused a change: the document as it is before the change, or as it would be after it. */
  side?: 'before' | 'after';
  /** For EMAIL_TAKEN of an anonymous user: token for the project's server. */
  mergeToken?: string;
}

export interface AppErrorOptions {
  details?: FieldProblem[];
  /** Answered as `Retry-After`. */
  retryAfterSeconds?: number;
  /** Further response headers, for example `Allow`. */
  headers?: Record<string, string>;
  /** Answered as `data`; of `MFA_REQUIRED` alone. */
  data?: Record<string, unknown>;
  cause?: unknown;
  /** Where in a text of the caller the mistake is, counted from 0: the command line points at it. */
  mistake?: Mistake;
}

export interface Mistake {
  text: string;
  at: number;
}

/**
 * An error the caller can do something about. Its message is shown to people as it stands; everything else that is
 * thrown counts as our own bug.
 */
export class AppError extends Error {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly details?: FieldProblem[];
  readonly retryAfterSeconds?: number;
  readonly headers?: Record<string, string>;
  readonly data?: Record<string, unknown>;
  readonly mistake?: Mistake;

  constructor(kind: ErrorKind, code: string, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.kind = kind;
    this.code = code;
    this.details = options.details;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers;
    this.data = options.data;
    this.mistake = options.mistake;
  }
}

/** The same error with another text, and with other details where they are given. */
export function retold(error: AppError, message: string, details = error.details): AppError {
  const { kind, code, retryAfterSeconds, headers } = error;
  return new AppError(kind, code, message, { details, retryAfterSeconds, headers, cause: error });
}

const make =
  (kind: ErrorKind) =>
  (code: string, message: string, options?: AppErrorOptions): AppError =>
    new AppError(kind, code, message, options);

/** 400 */
export const invalid = make('invalid');
/** 401 */
export const unauthenticated = make('unauthenticated');
/** 403 */
export const forbidden = make('forbidden');
/** 404 */
export const missing = make('missing');
/** 405, with `Allow` among the headers */
export const methodNotAllowed = make('methodNotAllowed');
/** 408: the client took too long to send its request. */
export const timedOut = make('timedOut');
/** 409 */
export const conflict = make('conflict');
/** 410 */
export const expired = make('expired');
/** 412 */
export const preconditionFailed = make('preconditionFailed');
/** 413 */
export const tooLarge = make('tooLarge');
/** 416, with `Content-Range` among the headers */
export const unsatisfiable = make('unsatisfiable');
/** 422 */
export const unprocessable = make('unprocessable');
/** 423 */
export const locked = make('locked');
/** 429 */
export const overLimit = make('overLimit');
/** 503: a dependency is away or the server is full; worth trying again. */
export const unavailable = make('unavailable');
/** 507: the disk is full; what frees space still works. */
export const outOfSpace = make('outOfSpace');
/** The client has left and takes no answer; 499 in logs and metrics. */
export const abandoned = (): AppError => new AppError('abandoned', 'CLIENT_LEFT', 'The client disconnected');
