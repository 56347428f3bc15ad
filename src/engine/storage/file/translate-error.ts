import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { damagedFile, StorageError } from '../storage-error.js';

/** Address space that is set aside for the file; LMDB takes more when it is used up. */
export const MAP_BYTES = 256 * 2 ** 30;

/** LMDB's errors that a whole file never gives, and what they say about it. */
const DAMAGE: readonly (readonly [RegExp, string])[] = [
  [/MDB_PAGE_NOTFOUND/, 'a page that another one names is not there'],
  [/MDB_CORRUPTED/, 'a page is of another kind than it should be'],
  [/MDB_BAD_TXN/, 'a page could not be read just before'],
  [/MDB_CURSOR_FULL/, 'its pages form no tree'],
  [/MDB_PAGE_FULL/, 'a page holds more than fits into it'],
  [/MDB_PROBLEM/, 'a page is not as it was written'],
  [/MDB_INCOMPATIBLE/, 'not every page of it is in use or free'],
  [/MDB_BAD_VALSIZE|Invalid key size/i, 'a key or value has an impossible size'],
];

/** True for what LMDB has thrown: the transaction in which it did cannot be used any more. */
export function failsTransaction(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return /MDB_/.test(
    error instanceof StorageError ? String((error.cause as Error | undefined)?.message) : error.message,
  );
}

/**
 * LMDB's and the system's errors as a StorageError where the operator can do something; anything else unchanged. `ns`:
 * the namespace that was read or written, if it is one.
 */
export function translateStorageError(error: unknown, path: string, ns: string | null = null): unknown {
  if (error instanceof StorageError) return ns === null ? error : naming(error, ns);
  if (!(error instanceof Error)) return error;
  const text = `${(error as NodeJS.ErrnoException).code ?? ''} ${error.message}`;
  if (/MDB_MAP_FULL/.test(text) && !isMapFull(path)) {
    return damagedFile(path, 'its list of free pages names pages beyond the end', { cause: error, ns });
  }
  if (/ENOSPC|No space left|MDB_MAP_FULL|EFBIG|File too large|EDQUOT|quota/i.test(text)) {
    return noSpace(path, error);
  }
  if (/MDB_PANIC/.test(text)) return failedWrite(path, error);
  if (/EIO|Input\/output error/i.test(text)) {
    // LMDB reports a write that the file system cut short by the same error.
    if (hasRoom(path)) return new StorageError('FAILED', `${path} cannot be read or written: ${DISK_ERROR}`, error);
    return noSpace(path, error);
  }
  if (/EACCES|EROFS|EPERM|Permission denied|Read-only file system|not permitted/i.test(text)) {
    return new StorageError('NOT_WRITABLE', `The data file ${path} cannot be written to.`, error);
  }
  if (/MDB_INVALID|MDB_VERSION_MISMATCH|not an LMDB file/i.test(text)) {
    return new StorageError('FOREIGN', `${path} is not a data file of bsvc; move it away or restore a backup.`, error);
  }
  const damage = DAMAGE.find(([pattern]) => pattern.test(text));
  if (damage !== undefined) return damagedFile(path, damage[1], { cause: error, ns });
  if (/MDB_READERS_FULL|MDB_TLS_FULL/.test(text)) {
    return new StorageError('BUSY', `${path} is read by too many processes at once; end some, or try again.`, error);
  }
  if (/MDB_/.test(text)) return new StorageError('BUSY', `${path} cannot be used just now; try again.`, error);
  return error;
}

const DISK_ERROR =
  'the disk reports an input/output error. Look at it and at the log of the system; writes go on when it writes again.';

/** The error after a write whose failure makes LMDB give the file up in this process, or after a failed sync. */
export function failedWrite(path: string, cause?: unknown): StorageError {
  const message = `${path} could not be written, so this process gives it up: start it again. The last commit is whole.`;
  return new StorageError('FAILED', message, cause);
}

/** The error about a full disk. */
export function noSpace(path: string, cause?: unknown): StorageError {
  return new StorageError('NO_SPACE', `No space left for ${path}; writes go on when there is space again.`, cause);
}

/** Less than this is what several commits may need at once. */
const LEAST_ROOM = 1024 * 1024;

function hasRoom(path: string): boolean {
  try {
    const { bavail, blocks, bsize } = statfsSync(dirname(path));
    // A file system of no blocks does not tell what it has.
    return blocks === 0 || bavail * bsize >= LEAST_ROOM;
  } catch {
    return true;
  }
}

/** Of damage that was found without knowing whose it is. */
function naming(error: StorageError, ns: string): StorageError {
  if (error.code !== 'DAMAGED' || error.ns !== null) return error;
  const { message, cause } = error;
  return new StorageError('DAMAGED', message.startsWith(ns) ? message : `${ns}: ${message}`, cause, ns);
}

/** The map is far larger than the file: a page beyond its end was taken from a damaged list of free pages. */
function isMapFull(path: string): boolean {
  return statSync(path).size >= MAP_BYTES / 2;
}
