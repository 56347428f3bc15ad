import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';
import type { IndexDescription } from 'mongodb';
import { invalid } from '../../errors.js';

export const BACKUP_FORMAT = 'bsvc-backup/1';

/**
 * One line of an archive, which is gzipped NDJSON: a head, then per collection its name with indexes and its documents
 * (BSON as base64, so that every type survives), then per file its path and its bytes, then the end with the counts and
 * the SHA-256 of all lines before it.
 */
export type ArchiveLine =
  | { format: string; version: string; createdAt: string; secretKey: string | null }
  | { collection: string; indexes: IndexDescription[] }
  | { document: string }
  | { file: string; size: number }
  | { bytes: string }
  | { end: { documents: number; files: number; sha256: string } };

/** Turns lines into text and keeps their checksum. */
export function createArchiveWriter(): { write(line: ArchiveLine): string; sha256(): string } {
  const hash = createHash('sha256');
  return {
    write(line) {
      const text = `${JSON.stringify(line)}\n`;
      hash.update(text);
      return text;
    },
    sha256: () => hash.copy().digest('hex'),
  };
}

/**
 * The lines of an archive in order. Throws 400 BACKUP_DAMAGED for one that is not whole or was changed, but only at the
 * place, or at the end: check it as a whole first.
 */
export async function* readArchive(path: string): AsyncGenerator<ArchiveLine> {
  const hash = createHash('sha256');
  const source = createReadStream(path);
  const unzipped = source.pipe(createGunzip());
  // An error of the file would otherwise never reach the reader of the unzipped stream.
  source.on('error', (error) => unzipped.destroy(error));
  // Damage that is met after the reader has stopped is nobody's error any more.
  unzipped.on('error', () => source.destroy());
  const counts = { documents: 0, files: 0 };
  let first = true;
  let ended = false;
  try {
    for await (const text of createInterface({ input: unzipped, crlfDelay: Infinity })) {
      const line = JSON.parse(text) as ArchiveLine;
      if (first && !('format' in line && line.format === BACKUP_FORMAT)) throw damaged(path, 'it is no backup of bsvc');
      first = false;
      if (ended) throw damaged(path, 'something follows its end');
      if ('end' in line) {
        const { documents, files, sha256 } = line.end;
        if (sha256 !== hash.digest('hex') || documents !== counts.documents || files !== counts.files) {
          throw damaged(path, 'its checksum does not match');
        }
        ended = true;
      } else {
        hash.update(`${text}\n`);
      }
      if ('document' in line) counts.documents++;
      if ('file' in line) counts.files++;
      yield line;
    }
  } catch (error) {
    if (error instanceof SyntaxError || /^Z_|^ERR_/.test(String((error as { code?: unknown }).code))) {
      throw damaged(path, first ? 'it is no backup of bsvc' : 'it cannot be read to its end');
    }
    throw error;
  } finally {
    source.destroy();
    unzipped.destroy();
  }
  if (!ended) throw damaged(path, 'it is cut short');
}

/** 400 BACKUP_DAMAGED. */
export function damaged(path: string, why: string): Error {
  return invalid('BACKUP_DAMAGED', `${path} cannot be restored: ${why}. Nothing was changed.`);
}
