import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import type { IndexDescription } from 'mongodb';
import { invalid } from '../../errors.js';

export const BACKUP_FORMAT = 'bsvc-backup/1';

/**
 * One line of an archive, which is gzipped NDJSON: a head, then per collection its name with indexes and its documents
 * (BSON as base64, so that every type survives), then per file its path and its bytes, then the paths of files that
 * were deleted while it was made, then the end with the counts and the SHA-256 of all lines before it.
 */
export type ArchiveLine =
  | { format: string; version: string; createdAt: string; secretKey: string | null }
  | { collection: string; indexes: IndexDescription[] }
  | { document: string }
  | { file: string; size: number }
  | { bytes: string }
  | { gone: string }
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
  // Damage that is met after the reader has stopped is no longer reported.
  unzipped.on('error', () => source.destroy());
  const counts = { documents: 0, files: 0 };
  let first = true;
  let ended = false;
  try {
    const order = new LineOrder();
    for await (const text of linesOf(unzipped, path)) {
      const line = JSON.parse(text) as ArchiveLine;
      if (first && !('format' in line && line.format === BACKUP_FORMAT)) throw damaged(path, 'it is no backup of bsvc');
      first = false;
      const objection = order.objection(line);
      if (objection !== null) throw damaged(path, objection);
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

/** More than the largest document as base64: a line is held in memory. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;

async function* linesOf(stream: AsyncIterable<Buffer>, path: string): AsyncGenerator<string> {
  let begun: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      begun.push(chunk.subarray(from, end));
      yield Buffer.concat(begun).toString('utf8');
      [begun, bytes, from] = [[], 0, end + 1];
    }
    begun.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > MAX_LINE_BYTES) throw damaged(path, 'it has a line that is longer than any of ours');
  }
  if (bytes > 0) yield Buffer.concat(begun).toString('utf8');
}

const LINE_END = 0x0a;
const COLLECTION_NAME = /^(?!system\.)[\w.-]{1,200}$/;
const MAX_PATH = 1_000;

/** What may follow what in an archive, and what may stand in a line. */
class LineOrder {
  #in: 'nothing' | 'head' | 'collection' | 'file' = 'nothing';

  /** What is wrong with the next line; null when nothing is. */
  objection(line: ArchiveLine): string | null {
    if ('format' in line) return this.#enter('head', this.#in === 'nothing', 'it has a second head');
    if ('collection' in line) {
      const isFine = COLLECTION_NAME.test(line.collection) && Array.isArray(line.indexes);
      return this.#enter('collection', isFine && this.#in !== 'file', 'it has a collection where none can be');
    }
    if ('file' in line) return this.#enter('file', isFilePath(line.file), 'it names a file outside its place');
    if ('document' in line) {
      return this.#in === 'collection' && isBson(line.document) ? null : 'it has a document where none can be';
    }
    if ('bytes' in line) {
      return this.#in === 'file' && typeof line.bytes === 'string' ? null : 'it has bytes of no file';
    }
    if ('gone' in line) return isFilePath(line.gone) ? null : 'it names a file outside its place';
    return 'end' in line ? null : 'it has a line of an unknown kind';
  }

  #enter(place: 'head' | 'collection' | 'file', isFine: boolean, objection: string): string | null {
    this.#in = place;
    return isFine ? null : objection;
  }
}

function isBson(text: unknown): boolean {
  if (typeof text !== 'string') return false;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length >= 5 && bytes.readInt32LE(0) === bytes.length && bytes.at(-1) === 0;
}

/** Relative, without steps up or to nowhere. */
function isFilePath(path: unknown): boolean {
  if (typeof path !== 'string' || path.length > MAX_PATH || path.includes('\0') || path.includes('\\')) return false;
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

/** 400 BACKUP_DAMAGED. */
export function damaged(path: string, why: string): Error {
  return invalid('BACKUP_DAMAGED', `${path} cannot be restored: ${why}. Nothing was changed.`);
}
