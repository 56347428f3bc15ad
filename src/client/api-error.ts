/** A broken rule of a validation. */
export interface Detail {
  field: string;
  rule: string;
  message: string;
  /** Of a stream: which subscription, counted from 0. */
  n?: number;
  /** Of `RULE_REFUSED`: the document as it is before the change, or as it would be after it. */
  side?: 'before' | 'after';
  /** For `EMAIL_TAKEN` of an anonymous user: token with which your server merges the two accounts. */
  mergeToken?: string;
}

/** The parts of a failure beside its message. */
export interface Failure {
  status: number;
  code: string;
  details?: readonly Detail[];
  data?: Readonly<Record<string, unknown>>;
  requestId?: string | undefined;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/** The one error of the client: a refusal of the service, or (status 0) no answer at all. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  /** HTTP status; 0 when there was no answer. */
  declare readonly status: number;
  /** For programs: `VALIDATION_FAILED`, `DUPLICATE_VALUE`, …; `NETWORK` when there was no answer. */
  declare readonly code: string;
  /** Every broken rule of a validation. */
  declare readonly details: readonly Detail[];
  /** What `MFA_REQUIRED` says about how to go on; empty otherwise. */
  declare readonly data: Readonly<Record<string, unknown>>;
  /** Names the request in the logs of the service. */
  declare readonly requestId: string | undefined;
  /** Seconds to wait before the request is worth another try. */
  declare readonly retryAfter: number | undefined;

  constructor(message: string, { cause, details = [], data = {}, ...failure }: Failure) {
    super(message, { cause });
    Object.assign(this, failure, { details, data });
  }
}

/** The refusal in a reply; of a proxy's page there is nothing but its status. */
export async function readRefusal(response: Response): Promise<ApiError> {
  const { status, headers } = response;
  const body = ((await response.json().catch(() => null)) ?? {}) as Partial<Failure> & { message?: string };
  return new ApiError(body.message ?? `The server answered ${status}`, {
    status,
    code: body.code ?? `HTTP_${status}`,
    details: body.details,
    data: body.data,
    requestId: body.requestId ?? headers.get('x-request-id') ?? undefined,
    retryAfter: readRetryAfter(headers.get('retry-after')),
  });
}

/** Seconds; a proxy may name the moment instead. */
function readRetryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  const seconds = Number(text);
  const left = isNaN(seconds) ? Math.ceil((Date.parse(text) - Date.now()) / 1000) : seconds;
  return left >= 0 ? left : undefined;
}
