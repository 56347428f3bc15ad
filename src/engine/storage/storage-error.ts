export type StorageErrorCode = 'NOT_WRITABLE' | 'FOREIGN' | 'TRUNCATED' | 'NEWER_FORMAT' | 'NO_SPACE' | 'DAMAGED';

/** A condition of the data directory that its owner can act on; the message says how. */
export class StorageError extends Error {
  constructor(
    readonly code: StorageErrorCode,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StorageError';
  }
}
