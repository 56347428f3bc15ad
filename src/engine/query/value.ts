import type { Decimal128, Timestamp } from 'bson';
import type { Binary, BSONRegExp, BSONSymbol, Code, ObjectId } from 'bson';
import { Double } from '../codec/bson.js';
import { compareDecimals, decimalOf, decimalToNumber, openDecimal } from './decimal.js';

/** A document in the engine: a plain object whose keys are data, `__proto__` included (see `setField`). */
export type Doc = Record<string, unknown>;

/** The type aliases that `$type` accepts and answers with. */
export type TypeName =
  | 'double'
  | 'string'
  | 'object'
  | 'array'
  | 'binData'
  | 'objectId'
  | 'bool'
  | 'date'
  | 'null'
  | 'regex'
  | 'dbPointer'
  | 'javascript'
  | 'symbol'
  | 'javascriptWithScope'
  | 'int'
  | 'timestamp'
  | 'long'
  | 'decimal'
  | 'minKey'
  | 'maxKey'
  | 'missing';

export const TYPE_NUMBERS: Readonly<Record<TypeName, number>> = {
  missing: 0,
  double: 1,
  string: 2,
  object: 3,
  array: 4,
  binData: 5,
  objectId: 7,
  bool: 8,
  date: 9,
  null: 10,
  regex: 11,
  dbPointer: 12,
  javascript: 13,
  symbol: 14,
  javascriptWithScope: 15,
  int: 16,
  timestamp: 17,
  long: 18,
  decimal: 19,
  minKey: -1,
  maxKey: 127,
};

const BSON_TYPES: Readonly<Record<string, TypeName>> = {
  Double: 'double',
  Decimal128: 'decimal',
  ObjectId: 'objectId',
  Binary: 'binData',
  Timestamp: 'timestamp',
  MinKey: 'minKey',
  MaxKey: 'maxKey',
  BSONRegExp: 'regex',
  Code: 'javascript',
  BSONSymbol: 'symbol',
  Long: 'long',
  Int32: 'int',
  DBRef: 'object',
};

/** Position of each type in BSON order; types that compare with each other share one. */
const RANKS: Readonly<Record<TypeName, number>> = {
  minKey: 1,
  missing: 2,
  null: 3,
  int: 4,
  long: 4,
  double: 4,
  decimal: 4,
  string: 5,
  symbol: 5,
  object: 6,
  array: 7,
  binData: 8,
  objectId: 9,
  bool: 10,
  date: 11,
  timestamp: 12,
  regex: 13,
  dbPointer: 14,
  javascript: 15,
  javascriptWithScope: 16,
  maxKey: 17,
};

const NUMBER_RANK = 4;
const plainPrototype = Object.prototype;

/** True for an embedded document: no array, date or BSON value. */
export function isDocument(value: unknown): value is Doc {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === plainPrototype || prototype === null) return true;
  if (Array.isArray(value) || value instanceof Date) return false;
  const tag = (value as { _bsontype?: unknown })._bsontype;
  return typeof tag !== 'string' || tag === 'DBRef';
}

/** True for an integral number in int32's range other than -0: what a plain JS number must be to be an int. */
export function isInt32(value: number): boolean {
  return (value | 0) === value && !Object.is(value, -0);
}

export function typeOf(value: unknown): TypeName {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'number':
      return isInt32(value) ? 'int' : 'double';
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'long';
    case 'object': {
      if (value === null) return 'null';
      if (Array.isArray(value)) return 'array';
      if (isDocument(value)) return 'object';
      if (value instanceof Date) return 'date';
      const type = BSON_TYPES[(value as { _bsontype: string })._bsontype] ?? 'object';
      return type === 'javascript' && (value as Code).scope != null ? 'javascriptWithScope' : type;
    }
    default:
      return 'missing';
  }
}

/** The place of a value's type in BSON order; equal for the four number types, for strings and symbols. */
export function rankOf(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return 5;
    case 'number':
    case 'bigint':
      return NUMBER_RANK;
    default:
      return RANKS[typeOf(value)];
  }
}

export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint' || (isBson(value) && rankOf(value) === NUMBER_RANK);
}

function isBson(value: unknown): value is { _bsontype: string } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isDocument(value);
}

export function isDecimal(value: unknown): value is Decimal128 {
  return typeof value === 'object' && value !== null && typeOf(value) === 'decimal';
}

export function isDouble(value: unknown): value is Double {
  return typeof value === 'object' && value !== null && typeOf(value) === 'double';
}

/** Null, or no value at all. */
export function isNullish(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** A double; as a plain number where that cannot be mistaken for an int. */
export function toDouble(value: number): number | Double {
  return isInt32(value) ? new Double(value) : value;
}

/** The nearest JS number of any numeric value; null for what is no number. */
export function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return null;
  const type = typeOf(value);
  if (type === 'double') return (value as Double).value;
  return type === 'decimal' ? decimalToNumber(openDecimal(value as Decimal128)) : null;
}

/** The integer a numeric value stands for, whatever its type; null when it is none or beyond 2^53. */
export function integerOf(value: unknown): number | null {
  const number = numberOf(value);
  return number !== null && Number.isSafeInteger(number) ? number : null;
}

/** MongoDB's notion of truth: everything but false, null, missing and a zero of any type. */
export function isTruthy(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return false;
  if (typeof value === 'number') return value !== 0;
  if (typeof value === 'bigint') return value !== 0n;
  const number = typeof value === 'object' ? numberOf(value) : null;
  return number !== 0;
}

/** A field's value, own properties only: `constructor` and the like are missing unless they are data. */
export function fieldOf(doc: Doc, name: string): unknown {
  const value = doc[name];
  if (typeof value === 'function' || (name === '__proto__' && !Object.hasOwn(doc, name))) return undefined;
  return value;
}

/** Sets a field; `__proto__` becomes a field like any other. */
export function setField(doc: Doc, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(doc, name, { value, writable: true, enumerable: true, configurable: true });
  } else doc[name] = value;
}

/** A copy of the top level, with the prototype-named field kept as data. */
export function copyDoc(doc: Doc): Doc {
  const copy: Doc = { ...doc };
  if (Object.hasOwn(doc, '__proto__')) setField(copy, '__proto__', doc['__proto__']);
  return copy;
}

/** By code point, which is the order of the UTF-8 bytes; JS compares UTF-16 units and differs for astral characters. */
export function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    let unitA = a.charCodeAt(i);
    let unitB = b.charCodeAt(i);
    if (unitA === unitB) continue;
    if (unitA >= 0xd800 && unitB >= 0xd800) {
      if (unitA < 0xe000) unitA += 0x10000;
      if (unitB < 0xe000) unitB += 0x10000;
    }
    return unitA < unitB ? -1 : 1;
  }
  return a.length - b.length < 0 ? -1 : 1;
}

function compareNumbers(a: unknown, b: unknown): number {
  const left = typeof a === 'object' && isDouble(a) ? a.value : a;
  const right = typeof b === 'object' && isDouble(b) ? b.value : b;
  if (typeof left === 'object' || typeof right === 'object') {
    return compareDecimals(decimalFrom(left), decimalFrom(right));
  }
  const x = left as number | bigint;
  const y = right as number | bigint;
  if (x < y) return -1;
  if (x > y) return 1;
  if (x == y) return 0; // eslint-disable-line eqeqeq -- compares a bigint with a number exactly
  return (Number.isNaN(x) ? 0 : 1) - (Number.isNaN(y) ? 0 : 1);
}

function decimalFrom(value: unknown) {
  return typeof value === 'object' ? openDecimal(value as Decimal128) : decimalOf(value as number | bigint);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Math.sign(Buffer.compare(a, b));
}

function compareBinary(a: Binary, b: Binary): number {
  const left = a.value();
  const right = b.value();
  if (left.length !== right.length) return left.length < right.length ? -1 : 1;
  if (a.sub_type !== b.sub_type) return a.sub_type < b.sub_type ? -1 : 1;
  return compareBytes(left, right);
}

function compareDocuments(a: Doc, b: Doc): number {
  const namesA = Object.keys(a);
  const namesB = Object.keys(b);
  const length = Math.min(namesA.length, namesB.length);
  for (let i = 0; i < length; i++) {
    const nameA = namesA[i]!;
    const nameB = namesB[i]!;
    const valueA = a[nameA];
    const valueB = b[nameB];
    const ranks = rankOf(valueA) - rankOf(valueB);
    if (ranks !== 0) return ranks < 0 ? -1 : 1;
    const names = compareStrings(nameA, nameB);
    if (names !== 0) return names;
    const values = compareValues(valueA, valueB);
    if (values !== 0) return values;
  }
  return Math.sign(namesA.length - namesB.length);
}

function compareArrays(a: readonly unknown[], b: readonly unknown[]): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const result = compareValues(a[i], b[i]);
    if (result !== 0) return result;
  }
  return Math.sign(a.length - b.length);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (value as BSONSymbol).value;
}

/**
 * The total order of BSON across all types; -1, 0 or 1. Numbers compare by value whatever their type, NaN first;
 * missing (`undefined`) comes just before null.
 */
export function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') {
    if (a < b) return -1;
    if (a > b) return 1;
    if (a === b) return 0;
    return (Number.isNaN(a) ? 0 : 1) - (Number.isNaN(b) ? 0 : 1);
  }
  if (typeof a === 'string' && typeof b === 'string') return compareStrings(a, b);
  const rank = rankOf(a);
  const other = rankOf(b);
  if (rank !== other) return rank < other ? -1 : 1;
  switch (rank) {
    case NUMBER_RANK:
      return compareNumbers(a, b);
    case 5:
      return compareStrings(textOf(a), textOf(b));
    case 6:
      return compareDocuments(a as Doc, b as Doc);
    case 7:
      return compareArrays(a as unknown[], b as unknown[]);
    case 8:
      return compareBinary(a as Binary, b as Binary);
    case 9:
      return compareBytes((a as ObjectId).id, (b as ObjectId).id);
    case 10:
      return Number(a) - Number(b);
    case 11: {
      const x = (a as Date).getTime();
      const y = (b as Date).getTime();
      return x < y ? -1 : x > y ? 1 : 0;
    }
    case 12:
      return compareTimestamps(a as Timestamp, b as Timestamp);
    case 13: {
      const patterns = compareStrings((a as BSONRegExp).pattern, (b as BSONRegExp).pattern);
      return patterns === 0 ? compareStrings((a as BSONRegExp).options, (b as BSONRegExp).options) : patterns;
    }
    case 15:
      return compareStrings((a as Code).code as string, (b as Code).code as string);
    case 16: {
      const codes = compareStrings((a as Code).code as string, (b as Code).code as string);
      return codes === 0 ? compareDocuments((a as Code).scope as Doc, (b as Code).scope as Doc) : codes;
    }
    default:
      return 0;
  }
}

function compareTimestamps(a: Timestamp, b: Timestamp): number {
  if (a.t !== b.t) return a.t < b.t ? -1 : 1;
  return a.i < b.i ? -1 : a.i > b.i ? 1 : 0;
}

export function equalValues(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a === 'string' && typeof b === 'string') return false;
  return compareValues(a, b) === 0;
}

/** Equal in value and in every type and field order within: a write of one over the other changes nothing. */
export function identicalValues(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b);
  if (a === b) return true;
  const type = typeOf(a);
  if (type !== typeOf(b)) return false;
  if (type === 'array') {
    const left = a as unknown[];
    const right = b as unknown[];
    return left.length === right.length && left.every((item, i) => identicalValues(item, right[i]));
  }
  if (type === 'object') {
    const names = Object.keys(a);
    const others = Object.keys(b);
    return (
      names.length === others.length &&
      names.every((name, i) => name === others[i] && identicalValues((a as Doc)[name], (b as Doc)[name]))
    );
  }
  if (type === 'double') return Object.is((a as Double).value, (b as Double).value);
  if (type === 'decimal') return compareBytes((a as Decimal128).bytes, (b as Decimal128).bytes) === 0;
  return compareValues(a, b) === 0;
}

/** Roughly the bytes a value occupies, for memory budgets; not the exact BSON size. */
export function roughSize(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return 16 + value.length;
    case 'object': {
      if (value === null) return 8;
      if (Array.isArray(value)) {
        let size = 16;
        for (const item of value) size += 8 + roughSize(item);
        return size;
      }
      if (isDocument(value)) {
        let size = 16;
        for (const name in value) size += 8 + name.length + roughSize(value[name]);
        return size;
      }
      return typeOf(value) === 'binData' ? 32 + (value as Binary).position : 32;
    }
    default:
      return 8;
  }
}
