import { createHash } from 'node:crypto';
import type { Binary, BSONRegExp, BSONSymbol, Code, Decimal128, Double, ObjectId, Timestamp } from 'bson';
import { type Doc, isDocument } from '../../codec/document.js';
import { checksumOfWords } from '../format/checksum.js';
import { decimalKeyParts } from './decimal-key.js';
import {
  ARRAY_KIND,
  BINARY_KIND,
  BOOLEAN_KIND,
  CODE_KIND,
  CODE_WITH_SCOPE_KIND,
  DATE_KIND,
  DB_REFERENCE_KIND,
  DOCUMENT_KIND,
  EMPTY_ARRAY_KIND,
  MAX_KEY_KIND,
  MIN_KEY_KIND,
  NULL_KIND,
  NUMBER_KIND,
  OBJECT_ID_KIND,
  REGEX_KIND,
  TEXT_KIND,
  TIMESTAMP_KIND,
} from './key-kinds.js';

/** Marks where a component that was too long continues as a hash; above every byte that continues a component. */
const HASH_MARK = 0xff;
const HASH_LENGTH = 32;
/** LMDB refuses keys over 1978 bytes; what the prefix, the trailing `_id` and the hash marks need is taken off. */
const FIELDS_BUDGET = 1400;
export const MAX_ID_BYTES = 512;

/** An empty array as an indexed value sorts below null; query code says it with this symbol. */
export const EMPTY_ARRAY_VALUE = Symbol('empty array');

/** How many bytes one component of an index over `parts` fields may take before the rest becomes a hash. */
export function componentLimit(parts: number): number {
  return Math.floor(FIELDS_BUDGET / parts);
}

const FIRST_CAPACITY = 0x1000;
const KEPT_CAPACITY = 0x100000;

const float = new Float64Array(1);
const floatBytes = new Uint8Array(float.buffer);

/**
 * Builds order-preserving keys: comparing two keys byte by byte compares the values in BSON order. One instance is
 * reused; what `take` returns is a copy.
 */
export class KeyWriter {
  private bytes = Buffer.allocUnsafeSlow(FIRST_CAPACITY);
  private words = new Int32Array(this.bytes.buffer);
  private at = 0;
  /** Set when a component had to be cut and hashed since the last reset: order and ranges are then only approximate. */
  cut = false;

  /** Starts a key in the given key space (`kind`) of a collection or an index (`owner`). */
  reset(kind: number, owner: number): this {
    this.restart();
    this.bytes[0] = kind;
    this.bytes[1] = owner >>> 24;
    this.bytes[2] = owner >>> 16;
    this.bytes[3] = owner >>> 8;
    this.bytes[4] = owner;
    this.at = 5;
    return this;
  }

  restart(): this {
    this.at = 0;
    this.cut = false;
    // One long text must not be paid for ever after.
    if (this.bytes.length > KEPT_CAPACITY) this.use(Buffer.allocUnsafeSlow(FIRST_CAPACITY));
    return this;
  }

  take(): Buffer {
    const key = Buffer.allocUnsafe(this.at);
    this.copyTo(key, 0);
    return key;
  }

  /** Copies the key to `target` from `start` on; returns the position after it. */
  copyTo(target: Uint8Array, start: number): number {
    for (let n = 0; n < this.at; n++) target[start + n] = this.bytes[n]!;
    return start + this.at;
  }

  /** Appends one component; when it is longer than `limit`, its head and a hash of the whole. */
  component(value: unknown, descending: boolean, limit: number): this {
    const start = this.at;
    this.value(value);
    if (this.at - start > limit) {
      const hash = createHash('sha256').update(this.bytes.subarray(start, this.at)).digest();
      this.at = start + limit - HASH_LENGTH - 1;
      this.byte(HASH_MARK);
      this.raw(hash);
      this.cut = true;
    }
    if (descending) this.invert(start);
    return this;
  }

  /**
   * Appends a component as a bound: one longer than what is kept of long ones is cut without a hash (and `cut` set), so
   * that the caller can widen the range to everything that begins so.
   */
  bound(value: unknown, descending: boolean, limit: number): this {
    const start = this.at;
    this.value(value);
    const head = limit - HASH_LENGTH - 1;
    if (this.at - start > head) {
      this.at = start + head;
      this.cut = true;
    }
    if (descending) this.invert(start);
    return this;
  }

  raw(bytes: Uint8Array): this {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
    return this;
  }

  /** As `raw`, for a few bytes in a buffer that a read overwrites: its real length is that of the longest value. */
  shared(bytes: Buffer, from = 0, to = bytes.length): this {
    this.reserve(to - from);
    for (let n = from; n < to; n++) this.bytes[this.at++] = bytes[n]!;
    return this;
  }

  /** The checksum of the key. */
  sum(): number {
    return checksumOfWords(0, this.words, 0, this.bytes, this.at);
  }

  /** The key in this writer's own memory, which the next key overwrites. */
  view(): Buffer {
    return this.bytes.subarray(0, this.at);
  }

  byte(byte: number): this {
    this.reserve(1);
    this.bytes[this.at++] = byte;
    return this;
  }

  private reserve(length: number): void {
    if (this.at + length <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.at + length));
    this.bytes.copy(larger, 0, 0, this.at);
    this.use(larger);
  }

  private use(bytes: Buffer<ArrayBuffer>): void {
    this.bytes = bytes;
    this.words = new Int32Array(bytes.buffer, 0, bytes.length >>> 2);
  }

  private invert(start: number): void {
    for (let i = start; i < this.at; i++) this.bytes[i] = ~this.bytes[i]!;
  }

  private value(value: unknown): void {
    switch (typeof value) {
      case 'string':
        this.byte(TEXT_KIND);
        this.text(value);
        return;
      case 'number':
        this.double(value);
        this.byte(0x80);
        return;
      case 'boolean':
        this.byte(BOOLEAN_KIND);
        this.byte(value ? 1 : 0);
        return;
      case 'bigint':
        this.int64(value);
        return;
      case 'undefined':
        this.byte(NULL_KIND);
        return;
      case 'symbol':
        this.byte(EMPTY_ARRAY_KIND);
        return;
      case 'object':
        if (value === null) this.byte(NULL_KIND);
        else this.object(value);
        return;
      default:
        throw new TypeError(`cannot index a ${typeof value}`);
    }
  }

  private object(value: object): void {
    if (Array.isArray(value)) {
      this.byte(ARRAY_KIND);
      for (const item of value) this.value(item);
      this.byte(0);
      return;
    }
    if (value instanceof Date) {
      this.byte(DATE_KIND);
      this.sortableTime(Number.isNaN(value.getTime()) ? 0 : value.getTime());
      return;
    }
    const type = (value as { _bsontype?: unknown })._bsontype;
    if (type === undefined || isDocument(value)) {
      this.byte(DOCUMENT_KIND);
      this.fields(value as Doc);
    } else {
      this.bsonClass(value, type);
    }
  }

  private bsonClass(value: object, type: unknown): void {
    switch (type) {
      case 'ObjectId':
        this.byte(OBJECT_ID_KIND);
        this.raw((value as ObjectId).id);
        return;
      case 'Double':
        this.double((value as Double).value);
        this.byte(0x80);
        return;
      case 'Decimal128': {
        const { nearest, remainder } = decimalKeyParts(value as Decimal128);
        this.double(nearest);
        this.raw(remainder);
        return;
      }
      case 'Binary': {
        const binary = value as Binary;
        this.byte(BINARY_KIND);
        const length = binary.position;
        this.raw(Uint8Array.of(length >>> 24, length >>> 16, length >>> 8, length, binary.sub_type));
        this.raw(binary.buffer.subarray(0, length));
        return;
      }
      case 'Timestamp': {
        this.byte(TIMESTAMP_KIND);
        this.reserve(8);
        this.bytes.writeBigUInt64BE(BigInt.asUintN(64, (value as Timestamp).toBigInt()), this.at);
        this.at += 8;
        return;
      }
      case 'BSONRegExp':
        this.byte(REGEX_KIND);
        this.text((value as BSONRegExp).pattern);
        this.text((value as BSONRegExp).options);
        return;
      case 'BSONSymbol':
        this.byte(TEXT_KIND);
        this.text((value as BSONSymbol).value);
        return;
      case 'Code': {
        const { code, scope } = value as Code;
        this.byte(scope == null ? CODE_KIND : CODE_WITH_SCOPE_KIND);
        this.text(code);
        if (scope != null) this.fields(scope);
        return;
      }
      case 'DBRef':
        this.byte(DB_REFERENCE_KIND);
        this.text(JSON.stringify(value));
        return;
      case 'MinKey':
        this.byte(MIN_KEY_KIND);
        return;
      case 'MaxKey':
        this.byte(MAX_KEY_KIND);
        return;
      default:
        throw new TypeError(`cannot index a ${String(type)}`);
    }
  }

  /** Documents compare field by field: first the kind of the value, then the name, then the value. */
  private fields(doc: Doc): void {
    for (const name of Object.keys(doc)) {
      const kindAt = this.at;
      this.byte(0);
      this.text(name);
      const valueAt = this.at;
      this.value(doc[name]);
      this.bytes[kindAt] = this.bytes[valueAt]!;
    }
    this.byte(0);
  }

  /** UTF-8 with 0x00 and 0x01 escaped, so that one 0x00 can end it and a prefix sorts first. */
  private text(text: string): void {
    this.reserve(text.length * 3 + 1);
    const from = this.at;
    let plain = true;
    const length = this.bytes.utf8Write(text, from);
    for (let i = from; i < from + length; i++) {
      if (this.bytes[i]! < 2) {
        plain = false;
        break;
      }
    }
    if (plain) {
      this.at = from + length;
    } else {
      const raw = Buffer.from(this.bytes.subarray(from, from + length));
      this.reserve(length * 2 + 1);
      for (const byte of raw) {
        if (byte < 2) {
          this.bytes[this.at++] = 1;
          this.bytes[this.at++] = byte + 1;
        } else {
          this.bytes[this.at++] = byte;
        }
      }
    }
    this.byte(0);
  }

  private double(value: number): void {
    this.reserve(9);
    const { bytes } = this;
    let at = this.at;
    bytes[at++] = NUMBER_KIND;
    if (Number.isNaN(value)) {
      bytes.fill(0, at, at + 8);
    } else {
      // Adding zero turns -0 into 0, which is the same number in BSON's order.
      float[0] = value + 0;
      const negative = floatBytes[7]! > 0x7f;
      for (let i = 7; i >= 0; i--) bytes[at + 7 - i] = negative ? ~floatBytes[i]! : floatBytes[i]!;
      if (!negative) bytes[at] = bytes[at]! | 0x80;
    }
    this.at = at + 8;
  }

  /** The nearest double and what is left of the number, so that numbers of all kinds share one exact order. */
  private int64(value: bigint): void {
    const nearest = Number(value);
    this.double(nearest);
    const rest = value - BigInt(nearest);
    if (rest === 0n) this.byte(0x80);
    else this.raw(decimalKeyParts(value).remainder);
  }

  /** An int64 whose bytes sort as the number does: the sign is inverted. */
  private sortableTime(time: number): void {
    this.reserve(8);
    const high = Math.floor(time / 0x100000000);
    const low = time - high * 0x100000000;
    const { bytes, at } = this;
    bytes[at] = (high >>> 24) ^ 0x80;
    bytes[at + 1] = high >>> 16;
    bytes[at + 2] = high >>> 8;
    bytes[at + 3] = high;
    bytes[at + 4] = low >>> 24;
    bytes[at + 5] = low >>> 16;
    bytes[at + 6] = low >>> 8;
    bytes[at + 7] = low;
    this.at += 8;
  }
}

/** The encoded `_id` of a stored document that begins with an ObjectId `_id`, as most do; null for any other. */
export function objectIdKey(bytes: Buffer): Buffer | null {
  // The element: its type, the name with its zero, twelve bytes.
  if (bytes[4] !== 0x07 || bytes[5] !== 0x5f || bytes[6] !== 0x69 || bytes[7] !== 0x64 || bytes[8] !== 0) return null;
  const key = Buffer.allocUnsafe(13);
  key[0] = OBJECT_ID_KIND;
  for (let n = 1; n < 13; n++) key[n] = bytes[8 + n]!;
  return key;
}
