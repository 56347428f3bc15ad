import { decodeDocument } from '../../codec/decode.js';
import { encodeDocument } from '../../codec/encode.js';
import { StorageError } from '../storage-error.js';

/** The layout of keys and records; `src/engine/README.md` describes it. Raise it with a reader for the older one. */
export const STORAGE_FORMAT = 1;
/** What each data file of this version says of itself, byte for byte. */
export const FORMAT_RECORD = encodeDocument({ engine: 'bsvc', format: STORAGE_FORMAT });

/** Throws FOREIGN or NEWER_FORMAT when the format record is not of a file that this version reads. */
export function checkRecord(record: Buffer, path: string): void {
  const { engine, format } = readFormat(record, path);
  if (engine !== 'bsvc') throw new StorageError('FOREIGN', `${path} is an LMDB file of something else than bsvc.`);
  if (format !== STORAGE_FORMAT) {
    throw new StorageError(
      'NEWER_FORMAT',
      `${path} has storage format ${String(format)}, this version reads ${STORAGE_FORMAT}; use a newer bsvc.`,
    );
  }
}

/** The content of the file's format record; a StorageError FOREIGN when it is none of ours. */
function readFormat(record: Buffer, path: string): { engine?: unknown; format?: unknown } {
  try {
    return decodeDocument(record);
  } catch (error) {
    throw new StorageError('FOREIGN', `${path} is an LMDB file of something else than bsvc.`, error);
  }
}
