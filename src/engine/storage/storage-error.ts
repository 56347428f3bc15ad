import { presentIdKey } from './encoding/key-kinds.js';

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

const ADVICE =
  '"bsvc doctor --deep" names everything that is hurt, "bsvc doctor --repair" saves what is not; a backup brings the rest back.';

const damaged = (message: string, ns: string | null = null, cause?: unknown): StorageError =>
  new StorageError('DAMAGED', `${message} ${ADVICE}`, cause, ns);

/** A document that is not as it was stored. `idBytes`: its encoded `_id`. */
export function damagedDocument(ns: string, idBytes: Buffer): StorageError {
  return damaged(`${ns}: the document ${presentIdKey(idBytes)} is damaged.`, ns);
}

/** The error about a document that an index names and that is not there. */
export function missingDocument(ns: string, index: string, idBytes: Buffer): StorageError {
  return damaged(`${ns}: the document ${presentIdKey(idBytes)}, which the index ${index} names, is missing.`, ns);
}

/** The error about an index entry that cannot be read. */
export function damagedEntry(ns: string, index: string): StorageError {
  return damaged(`${ns}: the index ${index} is damaged.`, ns);
}

/** The error about a data file that cannot be opened or read. */
export function damagedFile(
  path: string,
  reason: string,
  { cause, ns = null }: { cause?: unknown; ns?: string | null } = {},
): StorageError {
  const what = ns === null ? `The data file ${path}` : `${ns}: a part of the data file ${path}`;
  return damaged(`${what} is damaged (${reason}).`, ns, cause);
}

/** A walk over everything that found something else than is counted. */
export function wrongCount(ns: string, place: string): StorageError {
  return damaged(`${ns}: ${place} is damaged: it holds other entries than were stored.`, ns);
}

/** The error about a record of the engine itself that cannot be read. */
export function damagedRecord(what: string, cause?: unknown): StorageError {
  return damaged(`${what} is damaged.`, null, cause);
}
