export type StorageErrorCode =
  | 'NOT_WRITABLE'
  | 'FOREIGN'
  | 'TRUNCATED'
  | 'NEWER_FORMAT'
  | 'NO_SPACE'
  | 'DAMAGED'
  /** The disk refuses to write, or to read, for another reason than its size. */
  | 'FAILED'
  | 'BUSY'
  /** Read, but not written: damage that writes would spread. */
  | 'READ_ONLY'
  /** Another file lies, or none, where the open one was. */
  | 'REPLACED'
  /** Other processes have the file open. */
  | 'SHARED';

/** A condition of the data directory that its owner can act on; the message says how. */
export class StorageError extends Error {
  constructor(
    readonly code: StorageErrorCode,
    message: string,
    cause?: unknown,
    /** The namespace in which damage was met, where it is known. */
    readonly ns: string | null = null,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StorageError';
  }
}
