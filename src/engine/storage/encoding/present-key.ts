import { NUMBER_KIND, OBJECT_ID_KIND, TEXT_KIND } from './key-kinds.js';

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
