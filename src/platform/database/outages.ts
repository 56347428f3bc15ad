import { unavailable, type AppError, outOfSpace } from '../../errors.js';

/**
 * The error to answer when the database itself cannot do its work just now (away, disk full, unusable file); null for
 * any other error.
 */
export function findOutage(error: unknown): AppError | null {
  if (!(error instanceof Error)) return null;
  // The driver wraps an error that stops a write of many documents in the middle.
  const inner =
    error.name === 'MongoBulkWriteError' ? findOutage((error as { errorResponse?: unknown }).errorResponse) : null;
  if (inner) return inner;
  const full = findFullDisk(error);
  if (full) return full;
  // Trying again does not mend it: it is an error of ours, with its cause in the log.
  if (isDamage(error)) return null;
  if (lacksDescriptors(error)) {
    const message = 'Too many files and connections are open just now. Please try again.';
    return unavailable('OVERLOADED', message, { cause: error, retryAfterSeconds: 5 });
  }
  if (isRefusedWrite(error)) {
    return unavailable('STORE_READ_ONLY', 'The database is read-only', { cause: error });
  }
  if (error.name === 'StorageError' && (error as { code?: unknown }).code === 'FAILED') {
    const message = 'The disk of the store reports an error. Please try again.';
    return unavailable('STORE_FAILED', message, { cause: error, retryAfterSeconds: 5 });
  }
  if (OUTAGE_NAMES.has(error.name) || isOutageAnswer(error)) {
    return unavailable('DATABASE_UNAVAILABLE', 'The database is unavailable', {
      cause: error,
      retryAfterSeconds: 5,
    });
  }
  return null;
}

/** True for a write that the embedded engine refuses because its file may only be read; the message says why. */
export function isRefusedWrite(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== 'StorageError') return false;
  const { code } = error as { code?: unknown };
  return code === 'READ_ONLY' || code === 'REPLACED';
}

/** MongoDB's DataCorruptionDetected. */
const CORRUPTION = 326;

/** True for the database's finding that what is stored is not as it was written; the embedded engine's names it. */
export function isDamage(error: unknown): error is Error & { ns?: string | null } {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return error.name === 'StorageError' ? code === 'DAMAGED' : error.name.startsWith('Mongo') && code === CORRUPTION;
}

const NO_DESCRIPTORS = /\bEMFILE\b|\bENFILE\b|too many open files/i;

/**
 * True when descriptors are used up, by this process or on this machine: it passes. What was to be opened says so in a
 * code, a thread that could not begin and LMDB only in their texts, and each may be the cause of what is thrown.
 */
export function lacksDescriptors(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (NO_DESCRIPTORS.test(`${String((at as { code?: unknown }).code)} ${at.message}`)) return true;
  }
  return false;
}

/** Errors of the embedded engine's file, and those of the official driver that mean that no answer came. */
const OUTAGE_NAMES = new Set([
  'StorageError',
  'MongoServerSelectionError',
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoWaitQueueTimeoutError',
  'MongoNotConnectedError',
  'MongoTopologyClosedError',
  'MongoPoolClosedError',
  'MongoPoolClearedError',
  'PoolClearedOnNetworkError',
  'MongoWriteConcernError',
]);

/**
 * Answers of a server that is just not able to work: it stops, has lost its office as primary, does not reach a shard,
 * or no majority confirms. The driver has tried twice by then.
 */
const OUTAGE_CODES = new Set<unknown>([
  6, // HostUnreachable
  7, // HostNotFound
  64, // WriteConcernTimeout
  89, // NetworkTimeout
  91, // ShutdownInProgress
  100, // UnsatisfiableWriteConcern
  133, // FailedToSatisfyReadPreference
  134, // ReadConcernMajorityNotAvailableYet
  189, // PrimarySteppedDown
  262, // ExceededTimeLimit
  9_001, // SocketException
  10_107, // NotWritablePrimary
  11_600, // InterruptedAtShutdown
  11_602, // InterruptedDueToReplStateChange
  13_435, // NotPrimaryNoSecondaryOk
  13_436, // NotPrimaryOrSecondary
]);

/** Codes of a socket that the other side closed while the driver writes to it; the driver passes them on. */
const BROKEN_SOCKET = new Set<unknown>(['EPIPE', 'ERR_STREAM_DESTROYED']);

function isOutageAnswer({ name, code }: Error & { code?: unknown }): boolean {
  return BROKEN_SOCKET.has(code) || (name.startsWith('Mongo') && OUTAGE_CODES.has(code));
}

/** Codes of the system and of a MongoDB for a disk that is full, or as full as this user may make it. */
const FULL = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EFBIG', 'NO_SPACE', 14_031]);

/**
 * The 507 NO_SPACE to answer when `error` says that a disk is full; null for any other error. Reading goes on, and
 * nothing of what was refused is stored.
 */
export function findFullDisk(error: unknown): AppError | null {
  if (!(error instanceof Error) || !FULL.has((error as { code?: unknown }).code)) return null;
  return outOfSpace('NO_SPACE', 'The disk is full. Reads still work; try writes again later', {
    cause: error,
    retryAfterSeconds: 30,
  });
}
