import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { conflict } from '../../src/errors.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';
import { decodeSource, type Encoding } from './decode-source.js';

const CHUNK_BYTES = 256 * 1024;

/** A file in pieces of UTF-8, or standard input for `-`. `count` is called with the bytes read. */
export function openSource(
  context: Context,
  file: string,
  { encoding = 'utf-8', count }: { encoding?: Encoding; count?: (bytes: number) => void } = {},
): AsyncIterable<Buffer> {
  const bytes =
    file === '-'
      ? (context.io.stdin as AsyncIterable<Buffer>)
      : createReadStream(resolve(context.io.cwd, file), { highWaterMark: CHUNK_BYTES, signal: context.stop });
  return decodeSource(count ? countBytes(bytes, count) : bytes, encoding);
}

async function* countBytes(chunks: AsyncIterable<Buffer>, count: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    count(chunk.length);
    yield chunk;
  }
}

/** Bytes of the file, null for standard input. Refuses what cannot be read before anything is connected. */
export async function measureSource(context: Context, file: string): Promise<number | null> {
  if (file !== '-') {
    const found = await stat(resolve(context.io.cwd, file));
    if (found.isDirectory()) throw conflict('NO_FILE', `${file} is a directory: name a file in it`);
    if (found.isFile()) await requireText(context, file);
    return found.size;
  }
  if (context.io.stdin.isTTY) {
    throw new UsageError('Standard input is a terminal: pipe the documents in, or name a file.');
  }
  return null;
}

/** How files begin that are taken for text by mistake, in Latin-1, and what to do with them. */
const NO_TEXT: readonly (readonly [beginning: string, advice: string])[] = [
  ['SQLite format 3\0', 'is a SQLite file: --from pocketbase reads one'],
  ['\u001f\u008b', 'is packed by gzip: unpack it first'],
  ['PK\u0003\u0004', 'is a ZIP archive: unpack it first'],
];
const LONGEST_BEGINNING = 16;

async function requireText(context: Context, file: string): Promise<void> {
  const opened = await open(resolve(context.io.cwd, file));
  try {
    const { buffer, bytesRead } = await opened.read(Buffer.alloc(LONGEST_BEGINNING), 0, LONGEST_BEGINNING, 0);
    const begins = buffer.toString('latin1', 0, bytesRead);
    const found = NO_TEXT.find(([beginning]) => begins.startsWith(beginning));
    if (found) throw conflict('NO_TEXT', `${file} ${found[1]}`);
  } finally {
    await opened.close();
  }
}
