import { type AppError, unavailable } from '../../errors.js';

interface ServiceError {
  name?: string;
  code?: string;
  $metadata?: { httpStatusCode?: number };
}

const RETRY_AFTER_SECONDS = 5;

/** True when S3 says that the object does not exist; HEAD answers carry no code, only the status. */
export function isAbsent(error: unknown): boolean {
  const { name, $metadata } = error as ServiceError;
  return name === 'NoSuchKey' || name === 'NotFound' || ($metadata?.httpStatusCode === 404 && name !== 'NoSuchBucket');
}

/** True when S3 refuses because the object is not the version that was asked for. */
export function isOtherVersion(error: unknown): boolean {
  const { name, $metadata } = error as ServiceError;
  return name === 'PreconditionFailed' || $metadata?.httpStatusCode === 412;
}

/** True for what may pass by itself: a broken connection, a time limit, a busy or failing server. */
export function isTransient(error: unknown): boolean {
  const status = (error as ServiceError).$metadata?.httpStatusCode;
  return status === undefined || status >= 500 || status === 429;
}

/**
 * The one form in which trouble with a bucket reaches the rest: 503 with the service's short code, never its text,
 * which may quote what must stay hidden.
 */
export function bucketError(error: unknown): AppError {
  if (error instanceof TypeError || error instanceof RangeError) throw error; // our own mistake, not the bucket's
  const { name = '', code, $metadata } = error as ServiceError;
  const reason = readReason($metadata?.httpStatusCode === undefined ? (code ?? name) : name);
  const options = { cause: error, retryAfterSeconds: RETRY_AFTER_SECONDS };
  if (code === 'PRIVATE_ADDRESS') {
    return unavailable('STORAGE_UNAVAILABLE', 'The bucket’s address is private and may not be used', options);
  }
  return isTransient(error)
    ? unavailable('STORAGE_UNAVAILABLE', `The bucket cannot be reached (${reason}): try again shortly`, options)
    : unavailable('STORAGE_REFUSED', `The bucket refused the request (${reason})`, options);
}

function readReason(text: string): string {
  return /^[A-Za-z0-9_]{1,60}$/.test(text) ? text : 'unknown reason';
}
