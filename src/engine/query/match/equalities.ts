import type { ObjectId } from 'bson';
import { type Doc, isDocument } from '../../codec/document.js';
import { FieldWalk } from '../../codec/field-walk.js';

/** A condition of the most frequent kind: a top-level field has a plain value. */
export interface Equality {
  readonly path: string;
  readonly value: PlainValue;
}

/**
 * The number of a top-level field lies within bounds: by `$gte` and `$lte`, or, where `isOptional`, by a `$nor` of
 * `$gt` and `$lt`, which what is no number meets too.
 */
export interface FieldRange {
  readonly path: string;
  readonly from: number;
  readonly to: number;
  readonly isOptional: boolean;
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

/** readEqualities into a list; false for any other filter. */
export function addEqualities(filter: Readonly<Record<string, unknown>>, found: Equality[], depth: number): boolean {
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

/** The plain value of `{$eq: value}`; anything else as it is. */
function plainly(value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  for (const name in value) if (name !== '$eq') return value;
  return value['$eq'];
}

const DOLLAR = 0x24;
const DOT = 0x2e;

/** True for the name of a top-level field that bytes are compared with. */
export function isPlainName(name: string): boolean {
  for (let n = 0; n < name.length; n++) {
    const code = name.charCodeAt(n);
    if (code === 0 || code > 0x7f || code === DOT) return false;
  }
  return true;
}

/** True for an object of fields, of no class. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** True for a value that a comparison of bytes can find. */
export function isPlainValue(value: unknown): value is PlainValue {
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

/** The verdict of a value's bytes on an equality; undefined = they do not tell. */
type Outcome = boolean | undefined;

/** Compares the value of the given type between `at` and `end`; undefined when only a decoded value can tell. */
type CompareBytes = (bytes: Buffer, type: number, at: number, end: number) => Outcome;

interface BoundCondition {
  readonly slot: number;
  readonly compare: CompareBytes;
  /** Whether a field that is not there meets it: it is equal to null. */
  readonly missing: boolean;
}

/**
 * Tests stored documents by equalities without decoding them, and decodes some fields of those that match: in one walk
 * over each.
 */
export class FieldTest {
  private readonly bound: readonly BoundCondition[];

  private constructor(
    equalities: readonly Equality[],
    ranges: readonly FieldRange[],
    private readonly fields: readonly string[],
    names: readonly string[],
    private readonly places: FieldWalk,
  ) {
    const bound: BoundCondition[] = equalities.map(({ path, value }) => ({
      slot: names.indexOf(path),
      compare: comparatorOf(value),
      missing: value === null,
    }));
    for (const range of ranges) {
      bound.push({ slot: names.indexOf(range.path), compare: rangeComparator(range), missing: range.isOptional });
    }
    this.bound = bound;
  }

  /** Null when there are too many fields for it, or one with a name of its own kind. */
  static of(
    equalities: readonly Equality[],
    fields: readonly string[] = [],
    ranges: readonly FieldRange[] = [],
  ): FieldTest | null {
    const names: string[] = [];
    for (const field of fields) if (!names.includes(field)) names.push(field);
    for (const { path } of equalities) if (!names.includes(path)) names.push(path);
    for (const { path } of ranges) if (!names.includes(path)) names.push(path);
    const places = FieldWalk.of(names);
    return places === null ? null : new FieldTest(equalities, ranges, fields, names, places);
  }

  /** True or false, or undefined when a field holds something (an array, a decimal) that the bytes do not decide. */
  test(bytes: Buffer): boolean | undefined {
    const { places, bound } = this;
    places.walk(bytes);
    let outcome: Outcome = true;
    for (let n = 0; n < bound.length; n++) {
      const { slot, compare, missing } = bound[n]!;
      const type = places.types[slot]!;
      const matches = type === 0 ? missing : compare(bytes, type, places.starts[slot]!, places.ends[slot]!);
      if (matches === false) return false;
      if (matches === undefined) outcome = undefined;
    }
    return outcome;
  }

  /** The fields of the document that was tested last. */
  decode(bytes: Buffer): Doc {
    return this.places.decode(bytes, this.fields.length);
  }
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

function rangeComparator({ from, to, isOptional }: FieldRange): CompareBytes {
  return (bytes, type, at) => {
    switch (type) {
      case 0x10: {
        const number = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
        return number >= from && number <= to;
      }
      case 0x01: {
        const number = bytes.readDoubleLE(at);
        return Number.isNaN(number) ? isOptional : number >= from && number <= to;
      }
      // Other numbers, items of a list, and what is above or below all.
      case 0x12:
      case 0x13:
      case ARRAY:
      case 0x7f:
      case 0xff:
        return undefined;
      default:
        return isOptional;
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

/** A field that equals a constant wherever an expression is true. */
interface ExpressionEquality {
  readonly path: string;
  readonly value: PlainValue;
}

/**
 * The equalities of fields with constants that hold where the expression of an `$expr` is true, for an index to look
 * up. A filter's equality finds more (the items of a list, too), so the expression still has to be asked.
 */
export function equalitiesOfExpression(expression: unknown): ExpressionEquality[] {
  if (!isDocument(expression)) return [];
  const parts = expression['$and'];
  if (Array.isArray(parts)) return parts.flatMap(equalitiesOfExpression);
  const operands = expression['$eq'];
  if (!Array.isArray(operands) || operands.length !== 2) return [];
  const [left, right] = operands as [unknown, unknown];
  return equalityOf(left, right) ?? equalityOf(right, left) ?? [];
}

function equalityOf(field: unknown, other: unknown): ExpressionEquality[] | null {
  if (typeof field !== 'string' || !/^\$[^$]/.test(field)) return null;
  const isLiteral = isDocument(other) && Object.keys(other).join() === '$literal';
  const value: unknown = isLiteral ? other['$literal'] : other;
  if (!isLiteral && typeof value === 'string' && value.startsWith('$')) return null;
  // A missing field is not null here.
  return value !== null && isPlainValue(value) ? [{ path: field.slice(1), value }] : null;
}
