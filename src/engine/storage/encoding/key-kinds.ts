// The first byte of every encoded value is its place in BSON's order. 0x00 stays free: it ends documents and arrays.
export const MIN_KEY_KIND = 0x08;
export const EMPTY_ARRAY_KIND = 0x0c;
export const NULL_KIND = 0x10;
export const NUMBER_KIND = 0x20;
export const TEXT_KIND = 0x30;
export const DOCUMENT_KIND = 0x40;
export const ARRAY_KIND = 0x50;
export const BINARY_KIND = 0x60;
export const OBJECT_ID_KIND = 0x70;
export const BOOLEAN_KIND = 0x80;
export const DATE_KIND = 0x90;
export const TIMESTAMP_KIND = 0xa0;
export const REGEX_KIND = 0xb0;
export const DB_REFERENCE_KIND = 0xb8;
export const CODE_KIND = 0xc0;
export const CODE_WITH_SCOPE_KIND = 0xc8;
export const MAX_KEY_KIND = 0xf0;

const MAX_CHARACTERS = 100;

/** An encoded `_id` in words, for messages: ObjectIds, texts and plain numbers as themselves, others in hexadecimal. */
export function presentIdKey(idBytes: Buffer): string {
  const { length } = idBytes;
  if (idBytes[0] === OBJECT_ID_KIND && length === 13) return idBytes.toString('hex', 1, 13);
  if (idBytes[0] === TEXT_KIND && idBytes[length - 1] === 0) {
    return JSON.stringify(idBytes.toString('utf8', 1, Math.min(length - 1, 1 + MAX_CHARACTERS)));
  }
  if (idBytes[0] === NUMBER_KIND && length === 10) {
    const bits = Buffer.from(idBytes.subarray(1, 9));
    if (bits[0]! > 0x7f) bits[0]! &= 0x7f;
    else for (let n = 0; n < 8; n++) bits[n] = ~bits[n]!;
    return String(bits.readDoubleBE(0));
  }
  return `with the key ${idBytes.toString('hex', 0, Math.min(length, MAX_CHARACTERS))}`;
}
