import type { Binary, Decimal128, Timestamp } from 'bson';
import * as bson from './bson.js';
import type { Doc } from './document.js';
import { BsonFormatError, int32At, skipValue } from './elements.js';

declare global {
  interface Buffer {
    /** Node's own conversions without the argument checks of `toString` and `write`. */
    utf8Slice(start: number, end: number): string;
    utf8Write(text: string, at: number): number;
    latin1Slice(start?: number, end?: number): string;
  }
}

/**
 * Which JavaScript values come out. `engine`: the values the query code works on (int64 as bigint, a double that would
 * read as int32 as `Double`). `app`: what the official driver returns by default (promoted numbers, RegExp).
 */
export type DecodeTarget = 'engine' | 'app';

const MAX_DEPTH = 200;
const MIN_INT32 = -0x80000000;
const MAX_INT32 = 0x7fffffff;

const float = new Float64Array(1);
const floatBytes = new Uint8Array(float.buffer);

function readDouble(bytes: Buffer, at: number): number {
  floatBytes[0] = bytes[at]!;
  floatBytes[1] = bytes[at + 1]!;
  floatBytes[2] = bytes[at + 2]!;
  floatBytes[3] = bytes[at + 3]!;
  floatBytes[4] = bytes[at + 4]!;
  floatBytes[5] = bytes[at + 5]!;
  floatBytes[6] = bytes[at + 6]!;
  floatBytes[7] = bytes[at + 7]!;
  return float[0]!;
}

/** An int64 as a number: exact for every moment that a Date can hold. */
function readTime(bytes: Buffer, at: number): number {
  return (int32At(bytes, at) >>> 0) + int32At(bytes, at + 4) * 0x100000000;
}

/** Short copies are fastest byte by byte. */
function copyId(bytes: Buffer, at: number): Buffer {
  const id = Buffer.allocUnsafe(12);
  for (let n = 0; n < 12; n++) id[n] = bytes[at + n]!;
  return id;
}

function readText(bytes: Buffer, from: number, to: number): string {
  const length = to - from;
  // Short ASCII text is read faster character by character than through the native call.
  if (length < 16) {
    let text = '';
    for (let at = from; at < to; at++) {
      const byte = bytes[at]!;
      if (byte > 0x7f) return bytes.utf8Slice(from, to);
      text += String.fromCharCode(byte);
    }
    return text;
  }
  return bytes.utf8Slice(from, to);
}

// Documents have the same few field names again and again: those seen last are not read again.
const KNOWN_NAMES = 1024;
const MAX_KNOWN_NAME = 32;
const knownNames = new Array<string | undefined>(KNOWN_NAMES);

/** True when the bytes are exactly this text; says false for text that is not plain ASCII. */
function isText(bytes: Buffer, from: number, to: number, text: string): boolean {
  if (text.length !== to - from) return false;
  for (let n = 0; n < text.length; n++) {
    const byte = bytes[from + n]!;
    if (byte > 0x7f || text.charCodeAt(n) !== byte) return false;
  }
  return true;
}

const MAX_SHORT_LIST = 8;
const PLAIN_NAME = /^[\x01-\x7f]*$/;
let lastFields: ReadonlySet<string> | undefined;
let lastShortList: readonly string[] | null = null;

/** The names of a mask that are found faster by comparing bytes than by reading every name; null for other masks. */
function shortList(fields: ReadonlySet<string>): readonly string[] | null {
  // One mask serves many documents in a row.
  if (fields !== lastFields) {
    lastFields = fields;
    const names = fields.size <= MAX_SHORT_LIST ? [...fields] : [];
    lastShortList = names.length === fields.size && names.every((name) => PLAIN_NAME.test(name)) ? names : null;
  }
  return lastShortList;
}

class Decoder {
  private at = 0;
  private end = 0;
  private depth = 0;

  constructor(
    private readonly bytes: Buffer,
    private readonly app: boolean,
  ) {}

  document(start: number, fields: ReadonlySet<string> | undefined): Doc {
    const doc: Doc = {};
    const wanted = fields === undefined ? null : shortList(fields);
    const outerEnd = this.enter(start);
    for (;;) {
      const type = this.bytes[this.at]!;
      if (type === 0) break;
      this.at++;
      const name = wanted === null ? this.name() : this.wantedName(wanted);
      if (name === null || (wanted === null && fields !== undefined && !fields.has(name))) {
        this.at = skipValue(this.bytes, type, this.at);
        continue;
      }
      const value = this.value(type);
      if (name === '__proto__') {
        Object.defineProperty(doc, name, { value, writable: true, enumerable: true, configurable: true });
      } else {
        doc[name] = value;
      }
    }
    this.leave(outerEnd);
    return doc;
  }

  valueAt(type: number, start: number, end: number): unknown {
    this.at = start;
    // Behind every value there is another byte of its document.
    this.end = end + 1;
    return this.value(type);
  }

  private array(start: number): unknown[] {
    const list: unknown[] = [];
    const outerEnd = this.enter(start);
    for (;;) {
      const type = this.bytes[this.at]!;
      if (type === 0) break;
      this.at++;
      while (this.bytes[this.at] !== 0) if (++this.at >= this.end) throw new BsonFormatError('array index runs over');
      this.at++;
      list.push(this.value(type));
    }
    this.leave(outerEnd);
    return list;
  }

  private enter(start: number): number {
    const length = int32At(this.bytes, start);
    const end = start + length;
    if (length < 5 || end > this.bytes.length || this.bytes[end - 1] !== 0) {
      throw new BsonFormatError('document length is wrong');
    }
    if (++this.depth > MAX_DEPTH) throw new BsonFormatError(`nested deeper than ${MAX_DEPTH} levels`);
    const outerEnd = this.end;
    this.end = end;
    this.at = start + 4;
    return outerEnd;
  }

  private leave(outerEnd: number): void {
    if (this.at !== this.end - 1) throw new BsonFormatError('document ends too early');
    this.at = this.end;
    this.end = outerEnd;
    this.depth--;
  }

  private name(): string {
    const { bytes, end } = this;
    const from = this.at;
    let to = from;
    let hash = 0;
    let byte = bytes[to]!;
    while (byte !== 0) {
      hash = (hash * 31 + byte) | 0;
      if (++to >= end) throw new BsonFormatError('field name runs over');
      byte = bytes[to]!;
    }
    this.at = to + 1;
    if (to - from > MAX_KNOWN_NAME) return readText(bytes, from, to);
    const place = (hash ^ (hash >>> 12)) & (KNOWN_NAMES - 1);
    const known = knownNames[place];
    if (known !== undefined && isText(bytes, from, to, known)) return known;
    return (knownNames[place] = readText(bytes, from, to));
  }

  /** The name at this place if it is one of those, else null. */
  private wantedName(wanted: readonly string[]): string | null {
    const { bytes, end } = this;
    const from = this.at;
    let to = from;
    while (bytes[to] !== 0) if (++to >= end) throw new BsonFormatError('field name runs over');
    this.at = to + 1;
    for (const name of wanted) if (isText(bytes, from, to, name)) return name;
    return null;
  }

  private text(): string {
    const length = int32At(this.bytes, this.at);
    const from = this.at + 4;
    const to = from + length - 1;
    if (length < 1 || to >= this.end || this.bytes[to] !== 0) throw new BsonFormatError('string length is wrong');
    this.at = to + 1;
    return readText(this.bytes, from, to);
  }

  private need(length: number): number {
    const at = this.at;
    if (at + length >= this.end) throw new BsonFormatError('value runs over');
    this.at = at + length;
    return at;
  }

  private value(type: number): unknown {
    const { bytes, app } = this;
    switch (type) {
      case 0x01: {
        const number = readDouble(bytes, this.need(8));
        if (!app && Number.isInteger(number) && number >= MIN_INT32 && number <= MAX_INT32) {
          return new bson.Double(number);
        }
        return number;
      }
      case 0x02:
        return this.text();
      case 0x03:
        return this.document(this.at, undefined);
      case 0x04:
        return this.array(this.at);
      case 0x05:
        return this.binary();
      case 0x06:
        return app ? undefined : null;
      case 0x07: {
        return new bson.ObjectId(copyId(bytes, this.need(12)));
      }
      case 0x08:
        return bytes[this.need(1)] === 1;
      case 0x09:
        return new Date(readTime(bytes, this.need(8)));
      case 0x0a:
        return null;
      case 0x0b:
        return this.regex();
      case 0x0c: {
        const namespace = this.text();
        return new bson.DBRef(namespace, new bson.ObjectId(copyId(bytes, this.need(12))));
      }
      case 0x0d:
        return new bson.Code(this.text());
      case 0x0e: {
        const symbol = this.text();
        return app ? symbol : new bson.BSONSymbol(symbol);
      }
      case 0x0f: {
        const start = this.need(4);
        const code = this.text();
        const scope = this.document(this.at, undefined);
        if (this.at !== start + int32At(bytes, start)) throw new BsonFormatError('code length is wrong');
        return new bson.Code(code, scope);
      }
      case 0x10:
        return int32At(bytes, this.need(4));
      case 0x11:
        return this.timestamp();
      case 0x12: {
        const long = bytes.readBigInt64LE(this.need(8));
        return app ? promoteLong(long) : long;
      }
      case 0x13:
        return this.decimal();
      case 0xff:
        return new bson.MinKey();
      case 0x7f:
        return new bson.MaxKey();
      default:
        throw new BsonFormatError(`unknown element type 0x${type.toString(16)}`);
    }
  }

  private binary(): Binary {
    const length = int32At(this.bytes, this.need(5));
    const subType = this.bytes[this.at - 1]!;
    if (length < 0) throw new BsonFormatError('binary length is wrong');
    const at = this.need(length);
    // Subtype 2 repeats its length inside; what counts is the inner content.
    const from = subType === 2 ? at + 4 : at;
    const content = Uint8Array.prototype.slice.call(this.bytes, from, at + length);
    return subType === 4 && content.length === 16
      ? new bson.Binary(content, 4).toUUID()
      : new bson.Binary(content, subType);
  }

  private timestamp(): Timestamp {
    return new bson.Timestamp(this.bytes.readBigUInt64LE(this.need(8)));
  }

  private decimal(): Decimal128 {
    const at = this.need(16);
    return new bson.Decimal128(Uint8Array.prototype.slice.call(this.bytes, at, at + 16));
  }

  private regex(): unknown {
    const pattern = this.name();
    const options = this.name();
    if (!this.app) return new bson.BSONRegExp(pattern, options);
    let flags = '';
    // The driver maps the option `s` to the flag `g`, both ways.
    for (const option of options) flags += option === 's' ? 'g' : option === 'i' || option === 'm' ? option : '';
    return new RegExp(pattern, flags);
  }
}

/** An int64 as the driver gives it by default: a number when it is exact, else a `Long`. */
export function promoteLong(long: bigint): unknown {
  return long >= BigInt(Number.MIN_SAFE_INTEGER) && long <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(long)
    : bson.Long.fromBigInt(long);
}

/**
 * Decodes the document that begins at `start`. With `fields`, only those top-level fields; the others are skipped
 * without being looked at. Copies everything, so `bytes` may be reused. Throws BsonFormatError.
 */
export function decodeDocument(
  bytes: Buffer,
  target: DecodeTarget = 'engine',
  fields?: ReadonlySet<string>,
  start = 0,
): Doc {
  return new Decoder(bytes, target === 'app').document(start, fields);
}

/** The engine's value of `type` that lies from `start` to `end`. Throws BsonFormatError. */
export function decodeValue(bytes: Buffer, type: number, start: number, end: number): unknown {
  return new Decoder(bytes, false).valueAt(type, start, end);
}
