import type { App } from '../../app.js';
import { DamagedFileError, readChecked } from '../../platform/object-store/block-sums.js';
import { objectOf, storedBytesOf, type FileRecord } from './file.js';

/**
 * The bytes of a file in the data directory, all or those of a range, each part compared with its checksum before it is
 * given out. Throws DamagedFileError for what is not as it was stored, or missing.
 */
export async function* readFileBytes(
  app: Pick<App, 'files'>,
  file: Pick<FileRecord, 'object' | 'path' | 'size' | 'sums'>,
  range?: { start: number; end: number },
): AsyncGenerator<Buffer, void, undefined> {
  const opened = await app.files.local.openFile(objectOf(file));
  if (!opened) throw new DamagedFileError(objectOf(file), 'is missing');
  yield* readChecked(opened, objectOf(file), storedBytesOf(file), range);
}
