import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { TextDecoder } from 'node:util';
import { invalid } from './errors.js';

/**
 * The text of bytes that come from outside, such as a file or standard input: UTF-8 and nothing else, since other bytes
 * would silently become other characters. A byte order mark is removed. 400 INVALID_TEXT with `name` and the place.
 */
function decodeUtf8(bytes: Uint8Array, name: string): string {
  if (isUtf16(bytes)) throw invalid('INVALID_TEXT', `${name} is UTF-16, not UTF-8: save it as UTF-8`);
  const at = findNonUtf8(bytes);
  if (at < 0) return new TextDecoder().decode(bytes);
  const line = bytes.subarray(0, at).filter((byte) => byte === LINE_FEED).length + 1;
  throw invalid('INVALID_TEXT', `${name} is not UTF-8 (line ${line}, byte ${at + 1}): save it as UTF-8`);
}

/** The text of a file, as `decodeUtf8` reads it. */
export async function readTextFile(path: string, name = path): Promise<string> {
  const bytes = await readFile(path).catch((error: unknown) => {
    // The system names no path for what was opened already, as a directory.
    throw Object.assign(error as Error, { path });
  });
  return decodeUtf8(bytes, name);
}

/** `readTextFile` for settings, which are read before anything else runs. */
export function readTextFileSync(path: string, name = path): string {
  return decodeUtf8(readFileSync(path), name);
}

/** The text of a stream such as standard input, as `decodeUtf8` reads it. 413 when it is longer than `maxBytes`. */
export async function readTextStream(chunks: AsyncIterable<unknown>, name: string, maxBytes: number): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const part = Buffer.from(chunk as Buffer);
    length += part.length;
    if (length > maxBytes) throw invalid('TEXT_TOO_LONG', `${name} is longer than ${maxBytes} bytes`);
    parts.push(part);
  }
  return decodeUtf8(Buffer.concat(parts), name);
}

/** The beginning of a text as it can be shown: wrong bytes are replaced, what was cut off at its end is left out. */
export function readBeginning(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes, { stream: true });
}

/** The position of the first byte that is no UTF-8; -1 when there is none. */
export function findNonUtf8(bytes: Uint8Array): number {
  const isWrong = (end: number, stream: boolean): boolean => {
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, end), { stream });
      return false;
    } catch {
      return true;
    }
  };
  if (!isWrong(bytes.length, false)) return -1;
  let [right, wrong] = [0, bytes.length];
  while (wrong - right > 1) {
    const middle = (right + wrong) >> 1;
    if (isWrong(middle, true)) wrong = middle;
    else right = middle;
  }
  return right;
}

const LINE_FEED = 0x0a;

/** True for UTF-16, by its byte order mark or by the zero byte that every other character of Western text has. */
export function isUtf16([first, second]: Uint8Array): boolean {
  const marked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  return marked || (second !== undefined && (first === 0) !== (second === 0));
}
