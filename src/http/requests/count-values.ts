const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;

/**
 * The values of a JSON text, lists and objects included, by one pass over its bytes and without parsing it. An empty
 * list or object counts as two: it costs what one with an item does. For text that is no JSON the number is that of
 * what stands before the mistake, or more.
 */
export function countValues(bytes: Uint8Array): number {
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = endOfText(bytes, at + 1);
    } else if (byte === COMMA || byte === OPEN_LIST || byte === OPEN_OBJECT) {
      values++;
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
