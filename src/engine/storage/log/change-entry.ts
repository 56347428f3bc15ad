import { skipValue } from '../../codec/elements.js';
import { checksum } from '../format/checksum.js';
import { sealInPlace, SUM_BYTES } from '../format/stored-form.js';
import { CHANGE_SPACE } from '../format/key-spaces.js';
import type { PreparedLog } from '../keys/index-definition.js';

/**
 * An entry: its key is the space, the id of the log and the number, 64 bits; behind the mark of every sealed value
 * come the operation, flags, the moment in 48 bits, and in BSON the document as it was before, or of an insert its
 * `_id` alone.
 */
const OPERATION_AT = 1;
const FLAGS_AT = 2;
const MOMENT_AT = 3;
const BSON_AT = 9;
const EMBEDDED_DOCUMENT = 3;
const PARTIAL = 1;
/** A field that is to be kept first was too large. */
const CUT = 2;

export const OPERATIONS = { insert: 1, update: 2, remove: 3 } as const;
export type ChangeOperation = (typeof OPERATIONS)[keyof typeof OPERATIONS];

/** A longer document is kept in part: it is logged to tell whom a change concerns, not to keep versions. */
const MAX_EARLIER_BYTES = 512;
/** Values up to this size are kept before larger ones: what is filtered by is short. */
const SHORT_ELEMENT_BYTES = 64;
/** Of each field that is kept first: a list says of two thousand users that they may read a document. */
const MAX_FIRST_BYTES = 64 * 1024;

/** The key of entry number `seq`. */
export function entryKey(logId: number, seq: number): Buffer {
  const key = Buffer.allocUnsafe(13);
  key[0] = CHANGE_SPACE;
  key.writeUInt32BE(logId, 1);
  key.writeUInt32BE(Math.floor(seq / 2 ** 32), 5);
  key.writeUInt32BE(seq % 2 ** 32, 9);
  return key;
}

/** The number of a log entry, from its key. */
export function seqOf(key: Buffer): number {
  return key.readUInt32BE(5) * 2 ** 32 + key.readUInt32BE(9);
}

/** The stored value of an entry about a document whose BSON is, or was, `bytes`. */
export function encodeEntry(
  key: Buffer,
  log: PreparedLog,
  operation: ChangeOperation,
  bytes: Buffer,
  at: number,
): Buffer {
  if (operation === OPERATIONS.insert) return sealEntry(key, operation, 0, at, [bytes.subarray(4, endOfId(bytes))]);
  if (bytes.length <= MAX_EARLIER_BYTES && !log.omit.some((name) => bytes.includes(name))) {
    return sealEntry(key, operation, 0, at, [bytes.subarray(4, bytes.length - 1)]);
  }
  const { elements, flags } = selectElements(log, bytes, MAX_EARLIER_BYTES);
  return sealEntry(key, operation, flags, at, elements);
}

/** As the entry, without the values of its document but for those that are kept first. */
export function eraseEntry(key: Buffer, log: PreparedLog, value: Buffer): Buffer {
  const bytes = value.subarray(BSON_AT, value.length - SUM_BYTES);
  const { elements } = selectElements(log, bytes, 0);
  const flags = value[FLAGS_AT]! | PARTIAL;
  return sealEntry(key, value[OPERATION_AT] as ChangeOperation, flags, value.readUIntBE(MOMENT_AT, 6), elements);
}

function sealEntry(
  key: Buffer,
  operation: ChangeOperation,
  flags: number,
  at: number,
  elements: readonly Uint8Array[],
): Buffer {
  const length = elements.reduce((sum, element) => sum + element.length, 5);
  const value = Buffer.allocUnsafe(BSON_AT + length + SUM_BYTES);
  value[OPERATION_AT] = operation;
  value[FLAGS_AT] = flags;
  value.writeUIntBE(at, MOMENT_AT, 6);
  value.writeInt32LE(length, BSON_AT);
  let end = BSON_AT + 4;
  for (const element of elements) {
    value.set(element, end);
    end += element.length;
  }
  value[end] = 0;
  return sealInPlace(checksum(0, key, key.length), value);
}

/** `_id` comes first in what is stored. */
function endOfId(bytes: Buffer): number {
  return skipValue(bytes, bytes[4]!, bytes.indexOf(0, 5) + 1);
}

/** `_id` and the fields that are kept first, then others as far as they fit, the short ones before the long. */
function selectElements(log: PreparedLog, bytes: Buffer, limit: number): { elements: Uint8Array[]; flags: number } {
  const kept: Uint8Array[] = [];
  const others: Uint8Array[] = [];
  let flags = 0;
  let left = limit;
  for (let at = 4; bytes[at] !== 0;) {
    const nameEnd = bytes.indexOf(0, at + 1);
    const end = skipValue(bytes, bytes[at]!, nameEnd + 1);
    const element = bytes.subarray(at, end);
    const isNamed = (name: Buffer): boolean => bytes.compare(name, 0, name.length, at + 1, nameEnd + 1) === 0;
    if (at === 4) {
      kept.push(element);
    } else if (log.first.some(isNamed)) {
      if (element.length <= MAX_FIRST_BYTES) {
        left -= element.length;
        kept.push(element);
      } else {
        flags |= PARTIAL | CUT;
      }
    } else if (!log.omit.some(isNamed)) {
      others.push(element);
    } else if (log.except !== null && element[0] === EMBEDDED_DOCUMENT) {
      const part = reduceTo(log.except, element, nameEnd + 1 - at);
      if (part !== null) others.push(part);
    }
    at = end;
  }
  for (const wanted of [(size: number) => size <= SHORT_ELEMENT_BYTES, (size: number) => size > SHORT_ELEMENT_BYTES]) {
    for (const element of others) {
      if (!wanted(element.length)) continue;
      if (element.length > left) {
        flags |= PARTIAL;
        continue;
      }
      left -= element.length;
      kept.push(element);
    }
  }
  return { elements: kept, flags };
}

/** The element of a document with that one field alone, whose own document begins at `from`; null where it lacks it. */
function reduceTo(name: Buffer, element: Buffer, from: number): Buffer | null {
  for (let at = from + 4; element[at] !== 0;) {
    const nameEnd = element.indexOf(0, at + 1);
    const end = skipValue(element, element[at]!, nameEnd + 1);
    if (element.compare(name, 0, name.length, at + 1, nameEnd + 1) === 0) {
      const length = Buffer.alloc(4);
      length.writeInt32LE(end - at + 5);
      return Buffer.concat([element.subarray(0, from), length, element.subarray(at, end), Buffer.alloc(1)]);
    }
    at = end;
  }
  return null;
}

/** An entry as it is read. */
export interface ChangeEntry {
  seq: number;
  operation: ChangeOperation;
  /** Milliseconds since 1970, by the clock of the process that wrote. */
  at: number;
  /** The BSON of the document before the change; of an insert its `_id` alone. */
  earlier: Buffer;
  /** Fields of the document may be missing from `earlier`. */
  isPartial: boolean;
  /** Also some that are to be kept first. */
  isCut: boolean;
}

/** The parts of a stored entry, in the memory of `value`. */
export function decodeEntry(key: Buffer, value: Buffer): ChangeEntry {
  return {
    seq: seqOf(key),
    operation: value[OPERATION_AT] as ChangeOperation,
    at: value.readUIntBE(MOMENT_AT, 6),
    earlier: value.subarray(BSON_AT, value.length - SUM_BYTES),
    isPartial: (value[FLAGS_AT]! & PARTIAL) !== 0,
    isCut: (value[FLAGS_AT]! & CUT) !== 0,
  };
}

/** The moment of a stored entry. */
export function momentOf(value: Buffer): number {
  return value.readUIntBE(MOMENT_AT, 6);
}

/** True for the entry of a removed document. */
export function isRemoval(value: Buffer): boolean {
  return value[OPERATION_AT] === OPERATIONS.remove;
}
