import { StorageError } from './storage-error.js';
import { presentIdKey } from './encoding/present-key.js';

const ADVICE =
  '"bsvc doctor --deep" names everything that is hurt, "bsvc doctor --repair" saves what is not; a backup brings the rest back.';

/** A document that is not as it was stored. `idBytes`: its encoded `_id`. */
export function damagedDocument(ns: string, idBytes: Buffer): StorageError {
  return new StorageError(
    'DAMAGED',
    `${ns}: the document ${presentIdKey(idBytes)} is damaged. ${ADVICE}`,
    undefined,
    ns,
  );
}

/** The error about a document that an index names and that is not there. */
export function missingDocument(ns: string, index: string, idBytes: Buffer): StorageError {
  return new StorageError(
    'DAMAGED',
    `${ns}: the document ${presentIdKey(idBytes)}, which the index ${index} names, is missing. ${ADVICE}`,
    undefined,
    ns,
  );
}

/** The error about an index entry that cannot be read. */
export function damagedEntry(ns: string, index: string): StorageError {
  return new StorageError('DAMAGED', `${ns}: the index ${index} is damaged. ${ADVICE}`, undefined, ns);
}

/** The error about a data file that cannot be opened or read. */
export function damagedFile(
  path: string,
  reason: string,
  { cause, ns = null }: { cause?: unknown; ns?: string | null } = {},
): StorageError {
  const what = ns === null ? `The data file ${path}` : `${ns}: a part of the data file ${path}`;
  return new StorageError('DAMAGED', `${what} is damaged (${reason}). ${ADVICE}`, cause, ns);
}

/** A walk over everything that found something else than is counted. */
export function wrongCount(ns: string, place: string): StorageError {
  return new StorageError(
    'DAMAGED',
    `${ns}: ${place} is damaged: it holds other entries than were stored. ${ADVICE}`,
    undefined,
    ns,
  );
}

/** The error about a record of the engine itself that cannot be read. */
export function damagedRecord(what: string, cause?: unknown): StorageError {
  return new StorageError('DAMAGED', `${what} is damaged. ${ADVICE}`, cause);
}
