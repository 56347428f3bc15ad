import type { ObjectId } from 'bson';
import { BsonFormatError, skipValue } from '../../codec/decode.js';

/** A condition of the most frequent kind: a top-level field has a plain value. */
export interface Equality {
  readonly path: string;
  readonly value: PlainValue;
}

/** Values that a comparison of bytes can find: no operators, no arrays or documents, no numbers of rare types. */
export type PlainValue = string | number | boolean | null | Date | ObjectId;

const MAX_EQUALITIES = 16;
const MAX_DEPTH = 4;

/**
 * The conditions of a filter that is nothing but equalities of top-level fields with plain values (`$eq` or not),
 * possibly under `$and`; null for any other filter.
 */
export function readEqualities(filter: object): Equality[] | null {
  const found: Equality[] = [];
  return addEqualities(filter as Readonly<Record<string, unknown>>, found, 0) ? found : null;
}

function addEqualities(filter: Readonly<Record<string, unknown>>, found: Equality[], depth: number): boolean {
  for (const path in filter) {
    if (!Object.prototype.hasOwnProperty.call(filter, path)) return false;
    const value = plainly(filter[path]);
    if (path.charCodeAt(0) === DOLLAR) {
      if (path !== '$and' || depth === MAX_DEPTH || !Array.isArray(value) || value.length === 0) return false;
      for (const part of value as unknown[]) {
        if (!isPlainObject(part) || !addEqualities(part, found, depth + 1)) return false;
      }
    } else {
      if (!isPlainValue(value) || !isPlainName(path) || found.length === MAX_EQUALITIES) return false;
      found.push({ path, value });
    }
  }
  return true;
}

/** What `{$eq: value}` says without its operator; anything else as it is. */
function plainly(value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  for (const name in value) if (name !== '$eq') return value;
  return value['$eq'];
}

const DOLLAR = 0x24;
const DOT = 0x2e;

function isPlainName(name: string): boolean {
  for (let n = 0; n < name.length; n++) {
    const code = name.charCodeAt(n);
    if (code === 0 || code > 0x7f || code === DOT) return false;
  }
  return true;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function isPlainValue(value: unknown): value is PlainValue {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0);
    case 'object':
      if (value === null) return true;
      if (value instanceof Date) return !Number.isNaN(value.getTime());
      return (value as { _bsontype?: unknown })._bsontype === 'ObjectId';
    default:
      return false;
  }
}

/** What the bytes of a value say about an equality. */
type Outcome = boolean | undefined;

/** Compares the value of the given type between `at` and `end`; undefined when only a decoded value can tell. */
type CompareBytes = (bytes: Buffer, type: number, at: number, end: number) => Outcome;

interface BoundEquality {
  readonly name: string;
  readonly compare: CompareBytes;
  /** A field that is not there is equal to null. */
  readonly missing: boolean;
}

/**
 * Tests stored documents without decoding them: true or false, or undefined when a field holds something (an array, a
 * decimal) that the bytes alone do not decide.
 */
export function compileByteTest(equalities: readonly Equality[]): (bytes: Buffer) => boolean | undefined {
  const bound = equalities.map(({ path, value }): BoundEquality => ({
    name: path,
    compare: comparatorOf(value),
    missing: value === null,
  }));
  const all = (1 << bound.length) - 1;
  const missing = bound.reduce((mask, { missing: matches }, n) => (matches ? mask | (1 << n) : mask), 0);
  return (bytes) => {
    const { length } = bytes;
    let matched = missing;
    let at = 4;
    for (;;) {
      const type = bytes[at];
      if (type === 0) return matched === all;
      if (type === undefined) throw new BsonFormatError('document ends too early');
      const from = at + 1;
      let to = from;
      while (bytes[to] !== 0) if (++to >= length) throw new BsonFormatError('field name runs over');
      const end = skipValue(bytes, type, to + 1);
      for (let n = 0; n < bound.length; n++) {
        const { name, compare } = bound[n]!;
        if (!isName(bytes, from, to, name)) continue;
        const outcome = compare(bytes, type, to + 1, end);
        if (outcome === undefined) return undefined;
        // Of two fields of the same name the last one counts, as when decoding.
        matched = outcome ? matched | (1 << n) : matched & ~(1 << n);
      }
      at = end;
    }
  };
}

function isName(bytes: Buffer, from: number, to: number, name: string): boolean {
  const length = name.length;
  if (length !== to - from) return false;
  for (let n = 0; n < length; n++) if (bytes[from + n] !== name.charCodeAt(n)) return false;
  return true;
}

const ARRAY = 0x04;

function comparatorOf(value: PlainValue): CompareBytes {
  switch (typeof value) {
    case 'boolean':
      return (bytes, type, at) => (type === 0x08 ? (bytes[at] === 1) === value : undecided(type));
    case 'string':
      return textComparator(value);
    case 'number':
      return numberComparator(value);
    default:
      if (value === null) return (_bytes, type) => type === 0x0a || type === 0x06 || undecided(type);
      if (value instanceof Date) {
        const time = BigInt(value.getTime());
        return (bytes, type, at) => (type === 0x09 ? bytes.readBigInt64LE(at) === time : undecided(type));
      }
      return objectIdComparator(value.id);
  }
}

/** A value of another type is not equal, but an array may have an element that is. */
function undecided(type: number): Outcome {
  return type === ARRAY ? undefined : false;
}

function textComparator(value: string): CompareBytes {
  const wanted = Buffer.from(value);
  return (bytes, type, at, end) => {
    // A symbol compares as text.
    if (type === 0x0e) return undefined;
    if (type !== 0x02) return undecided(type);
    if (end - at - 5 !== wanted.length) return false;
    for (let n = 0; n < wanted.length; n++) if (bytes[at + 4 + n] !== wanted[n]) return false;
    return true;
  };
}

function numberComparator(value: number): CompareBytes {
  const isInt32 = (value | 0) === value;
  return (bytes, type, at) => {
    switch (type) {
      case 0x10:
        return (
          isInt32 && (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) === value
        );
      case 0x01:
        return bytes.readDoubleLE(at) === value;
      case 0x12:
      case 0x13:
        return undefined;
      default:
        return undecided(type);
    }
  };
}

function objectIdComparator(wanted: Uint8Array): CompareBytes {
  return (bytes, type, at) => {
    if (type !== 0x07) return undecided(type);
    // The last bytes of an ObjectId differ most often.
    for (let n = 11; n >= 0; n--) if (bytes[at + n] !== wanted[n]) return false;
    return true;
  };
}
