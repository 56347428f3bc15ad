import { checksum } from './checksum.js';

/**
 * How values lie in the file. A document: its BSON, then the checksum of key and BSON. An entry of an
 * index: `SEALED`, the encoded `_id`, the checksum of key and both. A record of the catalog: `SEALED`, its content, the
 * checksum of key and both.
 */
const SEALED = 0x02;
export const SUM_BYTES = 4;

/** The checksum that ends a value. */
export function storedSum(value: Buffer, end = value.length): number {
  return value[end - 4]! | (value[end - 3]! << 8) | (value[end - 2]! << 16) | (value[end - 1]! << 24);
}

function appendSum(value: Buffer, keySum: number): void {
  const end = value.length - SUM_BYTES;
  value.writeInt32LE(checksum(keySum, value, end), end);
}

/** The stored value of a document: its bytes and their checksum, which depends on the key's. */
export function sealDocument(keySum: number, bson: Buffer): Buffer {
  const value = Buffer.allocUnsafe(bson.length + SUM_BYTES);
  bson.copy(value);
  appendSum(value, keySum);
  return value;
}

/** The length that a document says it has: where its checksum begins. */
export function bsonLength(value: Buffer): number {
  return value[0]! | (value[1]! << 8) | (value[2]! << 16) | (value[3]! << 24);
}

/**
 * The BSON of a document whose checksum is right, in the same memory; null when it is not, or when there is none. A
 * walk over everything spends most of its time here: nothing is allocated.
 */
export function sealedBson(keySum: number, value: Buffer): Buffer | null {
  const end = value.length;
  const length = end - SUM_BYTES;
  if (bsonLength(value) !== length || checksum(keySum, value, length) !== storedSum(value, end)) return null;
  // Lmdb's own buffer carries its length as a property that may be set; any other is cut.
  if ((value as { isGlobal?: boolean }).isGlobal !== true) return value.subarray(0, length);
  (value as { length: number }).length = length;
  return value;
}

/** Content behind the mark and before the checksum: entries of indexes and records of the catalog. */
export function seal(keySum: number, content: Buffer): Buffer {
  const value = Buffer.allocUnsafe(content.length + 1 + SUM_BYTES);
  value[0] = SEALED;
  content.copy(value, 1);
  appendSum(value, keySum);
  return value;
}

/** Marks and sums up a value whose content has been written behind its first byte. */
export function sealInPlace(keySum: number, value: Buffer): Buffer {
  value[0] = SEALED;
  appendSum(value, keySum);
  return value;
}

/** True when the checksum of a stored value is right for its bytes and its key. */
export function isSealIntact(keySum: number, value: Buffer): boolean {
  const { length } = value;
  return length > SUM_BYTES && checksum(keySum, value, length - SUM_BYTES) === storedSum(value, length);
}

/** The content of a sealed value; the buffer's memory is shared. */
export function contentOf(value: Buffer): Buffer {
  return value.subarray(1, value.length - SUM_BYTES);
}

/** The checksum that the entry of a document has under this key. */
export function entrySum(key: Buffer, idBytes: Buffer): number {
  return storedSum(seal(checksum(0, key, key.length), idBytes));
}
