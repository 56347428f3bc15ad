import { TextDecoder } from 'node:util';
import { conflict } from '../../src/errors.js';
import { isUtf16 } from '../../src/text.js';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';

/** Encodings that spreadsheets write; their text is read as if it had been UTF-8. */
export const ENCODINGS = ['utf-8', 'utf-16', 'latin1'] as const;
export type Encoding = (typeof ENCODINGS)[number];

const UTF_16_MARKS: readonly (readonly [mark: string, label: string])[] = [
  ['fffe', 'utf-16le'],
  ['feff', 'utf-16be'],
];

/**
 * The bytes of a file as UTF-8. A byte order mark of UTF-16 is believed whatever was said; UTF-8 passes as it is, and
 * is checked by its reader.
 */
async function* decodeSource(chunks: AsyncIterable<Buffer>, encoding: Encoding): AsyncGenerator<Buffer> {
  let decoder: TextDecoder | null | undefined;
  for await (const chunk of chunks) {
    if (decoder === undefined) decoder = chooseDecoder(chunk, encoding);
    yield decoder ? Buffer.from(decoder.decode(chunk, { stream: true })) : chunk;
  }
  const rest = decoder?.decode() ?? '';
  if (rest !== '') yield Buffer.from(rest);
}

function chooseDecoder(first: Buffer, encoding: Encoding): TextDecoder | null {
  const marked = UTF_16_MARKS.find(([mark]) => first.toString('hex', 0, 2) === mark)?.[1];
  if (marked) return new TextDecoder(marked);
  if (encoding === 'utf-8' && isUtf16(first)) {
    throw conflict('NO_TEXT', 'The file seems to be UTF-16: say so with --encoding utf-16, or save it as UTF-8');
  }
  if (encoding === 'utf-8') return null;
  return new TextDecoder(encoding === 'utf-16' ? 'utf-16le' : 'windows-1252');
}

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
