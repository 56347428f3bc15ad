import { isUtf8 } from 'node:buffer';
import { DAY_MS } from '../time/clock.js';
import { decimalText } from './decimal-text.js';

/*
 * JSON straight from BSON bytes, for what is read and answered as it is stored: no object is made of a document and
 * none of its texts is decoded. What BSON has and JSON has not is left to the slower way (decoding and JSON.stringify),
 * so that both ways always say the same.
 */

const FIRST_BYTES = 64 * 1024;
/** A buffer that one large answer needed is not kept for ever; one for a document of a megabyte is. */
const KEPT_BYTES = 8 * 1024 * 1024;
/** No element's JSON is more than six times as long as its BSON: a control character of a text becomes `\u00xx`. */
const MAX_GROWTH = 6;

/** The length from which copying a text without escapes is faster in one go. */
const LONG_TEXT_BYTES = 48;
const LAST_MOMENT_MS = 8.64e15;
const HIGH_WORD = 2 ** 32;
/** Up to here integers become numbers when a document is decoded. */
const LAST_EXACT = 2n ** 53n;
/** A quote, a day of up to 13 characters and its T. */
const MAX_DAY_BYTES = 16;
/** Days whose text is kept, a power of two. */
const KEPT_DAYS = 128;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

const HEX = Buffer.from('0123456789abcdef');
/** Bytes that a text must not hold as they are, with the letter of their short escape; 1 = only `\u00xx` will do. */
const ESCAPES = new Uint8Array(256);
for (let code = 0; code < 0x20; code++) ESCAPES[code] = 1;
for (const [code, letter] of [
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [QUOTE, '"'],
  [BACKSLASH, '\\'],
] as const) {
  ESCAPES[code] = letter.charCodeAt(0);
}

export const BSON_OBJECT_ID = 0x07;

/** JSON text in the making, as UTF-8 bytes in one buffer that is used again and again. */
export class JsonWriter {
  private bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  private length = 0;
  /** All bytes of texts so far, OR-ed: says whether there is anything but ASCII. */
  private seen = 0;
  /** Days by the last bits of their numbers: which one is kept there, the length of its text, and the text. */
  private readonly dayNumbers = new Float64Array(KEPT_DAYS).fill(Number.NaN);
  private readonly dayLengths = new Uint8Array(KEPT_DAYS);
  private readonly days = new Uint8Array(KEPT_DAYS * MAX_DAY_BYTES);

  /** With `exactAsText` numbers that JSON cannot hold exactly are texts; else they are left to the slower way. */
  constructor(private readonly exactAsText = false) {}

  /** Forgets what has been written; the first `room` bytes are left for what is put there later. */
  clear(room = 0): void {
    if (this.bytes.length > KEPT_BYTES) this.bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
    this.length = room;
  }

  /** The number of bytes written; `cutTo` goes back to such a place. */
  get place(): number {
    return this.length;
  }

  cutTo(place: number): void {
    this.length = place;
  }

  /** The text written so far, from a place on, one character for each byte: to be sent as `latin1`. */
  text(from = 0): string {
    return this.bytes.latin1Slice(from, this.length);
  }

  /** Puts `latin1` text into the room that was left for it; returns the place behind it. */
  put(text: string, at: number): number {
    return at + this.bytes.write(text, at, 'latin1');
  }

  /** Writes text in which a character stands for a byte. */
  appendBytes(text: string): void {
    this.reserve(text.length);
    this.length = this.put(text, this.length);
  }

  /** Makes room for the JSON of a number of bytes of BSON; writing elements relies on it. */
  reserve(bsonBytes: number): void {
    const needed = this.length + bsonBytes * MAX_GROWTH + 64;
    if (needed <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }

  /** Writes any text as it is. */
  append(text: string): void {
    this.reserve(text.length);
    this.length += this.bytes.utf8Write(text, this.length);
  }

  /** Writes one character of ASCII. */
  byte(code: number): void {
    if (this.length === this.bytes.length) this.reserve(1);
    this.bytes[this.length++] = code;
  }

  /** Writes a whole document; false as `element`. */
  document(source: Buffer): boolean {
    this.seen = 0;
    return this.elements(source, 0, source.length, false);
  }

  /** A document's opening brace, before its elements. */
  open(): void {
    this.seen = 0;
    this.bytes[this.length++] = 0x7b;
  }

  /** The closing brace, instead of the last element's comma. */
  close(): void {
    if (this.bytes[this.length - 1] === COMMA) this.length--;
    this.bytes[this.length++] = 0x7d;
  }

  /** True if the bytes written since `place` are UTF-8; texts come from the store unchecked. */
  isTextSince(place: number): boolean {
    return this.seen < 0x80 || isUtf8(this.bytes.subarray(place, this.length));
  }

  /**
   * Writes an element and a comma: its name at `name`, its value from `value` to `end` of `source`. False when JSON has
   * nothing for it; what has been written of it must then be taken back.
   */
  element(source: Buffer, type: number, name: number, value: number, end: number): boolean {
    this.string(source, name, value - 1);
    this.bytes[this.length++] = COLON;
    const written = this.value(source, type, value, end);
    this.bytes[this.length++] = COMMA;
    return written;
  }

  private value(source: Buffer, type: number, at: number, end: number): boolean {
    switch (type) {
      case 0x02:
        this.string(source, at + 4, end - 1);
        return true;
      case 0x10:
        this.number(readInt32(source, at));
        return true;
      case 0x01:
        this.number(readDouble(source, at));
        return true;
      case 0x08:
        this.ascii(source[at] === 0 ? 'false' : 'true');
        return true;
      case 0x09:
        this.date(readInt64(source, at));
        return true;
      case 0x0a:
        this.ascii('null');
        return true;
      case BSON_OBJECT_ID:
        this.objectId(source, at);
        return true;
      case 0x03:
        return this.elements(source, at, end, false);
      case 0x04:
        return this.elements(source, at, end, true);
      case 0x12: {
        const value = readInt64(source, at);
        if (Number.isSafeInteger(value)) this.number(value);
        else return this.exactAsText && this.long(source.readBigInt64LE(at));
        return true;
      }
      case 0x13: {
        const text = this.exactAsText ? decimalText(source, at) : null;
        if (text === null) return false;
        this.ascii(`"${text}"`);
        return true;
      }
      default:
        return false;
    }
  }

  private elements(source: Buffer, start: number, end: number, isArray: boolean): boolean {
    this.bytes[this.length++] = isArray ? 0x5b : 0x7b;
    let at = start + 4;
    while (at < end - 1) {
      const type = source[at]!;
      const value = endOfName(source, at + 1) + 1;
      const next = endOfValue(source, type, value);
      if (next < 0) return false;
      if (!isArray) {
        this.string(source, at + 1, value - 1);
        this.bytes[this.length++] = COLON;
      }
      if (!this.value(source, type, value, next)) return false;
      this.bytes[this.length++] = COMMA;
      at = next;
    }
    if (at > start + 4) this.length--;
    this.bytes[this.length++] = isArray ? 0x5d : 0x7d;
    return true;
  }

  /** The text from `start` to `end` in quotes. */
  private string(source: Buffer, start: number, end: number): void {
    const { bytes } = this;
    let { length, seen } = this;
    bytes[length++] = QUOTE;
    let at = start;
    if (end - start > LONG_TEXT_BYTES) {
      while (at < end) {
        const code = source[at]!;
        if (ESCAPES[code] !== 0) break;
        seen |= code;
        at++;
      }
      source.copy(bytes, length, start, at);
      length += at - start;
    }
    for (; at < end; at++) {
      const code = source[at]!;
      seen |= code;
      const escape = ESCAPES[code]!;
      if (escape === 0) {
        bytes[length++] = code;
        continue;
      }
      bytes[length++] = BACKSLASH;
      if (escape > 1) {
        bytes[length++] = escape;
        continue;
      }
      bytes[length++] = 0x75;
      bytes[length++] = 0x30;
      bytes[length++] = 0x30;
      bytes[length++] = HEX[code >> 4]!;
      bytes[length++] = HEX[code & 15]!;
    }
    bytes[length++] = QUOTE;
    this.length = length;
    this.seen = seen;
  }

  private ascii(text: string): void {
    const { bytes } = this;
    let { length } = this;
    for (let at = 0; at < text.length; at++) bytes[length++] = text.charCodeAt(at);
    this.length = length;
  }

  private number(value: number): void {
    if (value >= 0 && value < 1e9 && (value | 0) === value) this.digits(value);
    else this.ascii(Number.isFinite(value) ? String(value) : 'null');
  }

  /** A whole number of at most nine digits. */
  private digits(value: number): void {
    const { bytes, length } = this;
    let size = 1;
    for (let next = 10; next <= value; next *= 10) size++;
    let rest = value;
    for (let at = length + size - 1; at >= length; at--) {
      const shorter = (rest / 10) | 0;
      bytes[at] = 0x30 + rest - shorter * 10;
      rest = shorter;
    }
    this.length = length + size;
  }

  private long(value: bigint): true {
    this.ascii(value <= LAST_EXACT && value >= -LAST_EXACT ? String(value) : `"${value}"`);
    return true;
  }

  objectId(source: Buffer, start: number): void {
    const { bytes } = this;
    let { length } = this;
    bytes[length++] = QUOTE;
    for (let at = start; at < start + 12; at++) {
      const code = source[at]!;
      bytes[length++] = HEX[code >> 4]!;
      bytes[length++] = HEX[code & 15]!;
    }
    bytes[length++] = QUOTE;
    this.length = length;
  }

  /** ISO 8601 in UTC. Making the text of a day is most of the work, and documents of a page share their days. */
  private date(ms: number): void {
    if (!(Math.abs(ms) <= LAST_MOMENT_MS)) return this.ascii('null');
    const day = Math.floor(ms / DAY_MS);
    const slot = day & (KEPT_DAYS - 1);
    const start = slot * MAX_DAY_BYTES;
    if (this.dayNumbers[slot] !== day) this.keepDay(day, slot);
    const time = ms - day * DAY_MS;
    const { bytes, days } = this;
    const end = start + this.dayLengths[slot]!;
    let { length } = this;
    for (let at = start; at < end; at++) bytes[length++] = days[at]!;
    const hour = (time / 3_600_000) | 0;
    const minute = ((time / 60_000) | 0) % 60;
    const second = ((time / 1000) | 0) % 60;
    const milli = time % 1000;
    bytes[length++] = 0x30 + ((hour / 10) | 0);
    bytes[length++] = 0x30 + (hour % 10);
    bytes[length++] = COLON;
    bytes[length++] = 0x30 + ((minute / 10) | 0);
    bytes[length++] = 0x30 + (minute % 10);
    bytes[length++] = COLON;
    bytes[length++] = 0x30 + ((second / 10) | 0);
    bytes[length++] = 0x30 + (second % 10);
    bytes[length++] = 0x2e;
    bytes[length++] = 0x30 + ((milli / 100) | 0);
    bytes[length++] = 0x30 + (((milli / 10) | 0) % 10);
    bytes[length++] = 0x30 + (milli % 10);
    bytes[length++] = 0x5a;
    bytes[length++] = QUOTE;
    this.length = length;
  }

  private keepDay(day: number, slot: number): void {
    const iso = new Date(day * DAY_MS).toISOString();
    const text = `"${iso.slice(0, iso.indexOf('T') + 1)}`;
    this.dayNumbers[slot] = day;
    this.dayLengths[slot] = text.length;
    for (let at = 0; at < text.length; at++) this.days[slot * MAX_DAY_BYTES + at] = text.charCodeAt(at);
  }
}

/** The position of the NUL that ends the name at `at`. */
export function endOfName(source: Buffer, at: number): number {
  let end = at;
  while (end < source.length && source[end] !== 0) end++;
  return end;
}

/** The end of the value that begins at `at`; -1 for types that JSON lacks. */
export function endOfValue(source: Buffer, type: number, at: number): number {
  switch (type) {
    case 0x02:
      return at + 4 + readInt32(source, at);
    case 0x03:
    case 0x04:
      return at + readInt32(source, at);
    case 0x01:
    case 0x09:
    case 0x12:
      return at + 8;
    case BSON_OBJECT_ID:
      return at + 12;
    case 0x13:
      return at + 16;
    case 0x08:
      return at + 1;
    case 0x0a:
      return at;
    case 0x10:
      return at + 4;
    default:
      return -1;
  }
}

export function readInt32(source: Buffer, at: number): number {
  return source[at]! | (source[at + 1]! << 8) | (source[at + 2]! << 16) | (source[at + 3]! << 24);
}

function readInt64(source: Buffer, at: number): number {
  return readInt32(source, at + 4) * HIGH_WORD + (readInt32(source, at) >>> 0);
}

const doubleBytes = new Uint8Array(8);
const double = new Float64Array(doubleBytes.buffer);

/** Little-endian, as every machine is that this runs on. */
function readDouble(source: Buffer, at: number): number {
  for (let index = 0; index < 8; index++) doubleBytes[index] = source[at + index]!;
  return double[0]!;
}
