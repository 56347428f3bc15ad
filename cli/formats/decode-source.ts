import { TextDecoder } from 'node:util';
import { conflict } from '../../src/errors.js';
import { isUtf16 } from '../../src/text.js';

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
export async function* decodeSource(chunks: AsyncIterable<Buffer>, encoding: Encoding): AsyncGenerator<Buffer> {
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
