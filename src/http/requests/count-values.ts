const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;
const CLOSE_LIST = 0x5d;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

/**
 * The values of a JSON text, lists and objects included, by one pass over its bytes and without parsing it: what
 * follows a comma is one, and so is the first in each list and object that is not empty. For text that is no JSON the
 * number is that of what stands before the mistake, or more.
 */
export function countValues(bytes: Uint8Array): number {
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = endOfText(bytes, at + 1);
    } else if (byte === COMMA) {
      values++;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      while (bytes[at + 1]! <= SPACE) at++;
      const next = bytes[at + 1];
      if (next !== CLOSE_LIST && next !== CLOSE_OBJECT) values++;
    }
  }
  return values;
}

/** Where the text that begins there is closed. */
function endOfText(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
