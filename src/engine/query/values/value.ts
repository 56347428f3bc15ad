import type { Code, Decimal128 } from 'bson';
import { Double } from '../../codec/bson.js';
import { type Doc, isDocument, setField } from '../../codec/document.js';
import { decimalToNumber, openDecimal } from './decimal.js';

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

const TYPE_NUMBERS: Readonly<Record<TypeName, number>> = {
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

const NAMES_BY_NUMBER = new Map(Object.entries(TYPE_NUMBERS).map(([name, number]) => [number, name as TypeName]));

/** True for the aliases that an operand may give; `missing` is only ever an answer. */
export function isTypeName(text: string): text is TypeName {
  return text !== 'missing' && Object.hasOwn(TYPE_NUMBERS, text);
}

/** The type of a number that an operand gives, or null. */
export function findTypeByNumber(number: number | null): TypeName | null {
  return number === null || number === 0 ? null : (NAMES_BY_NUMBER.get(number) ?? null);
}

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
  DBRef: 'dbPointer',
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

/** The place of numbers in BSON order. */
export const NUMBER_RANK = 4;

/** True for an integral number in int32's range other than -0: what a plain JS number must be to be an int. */
export function isInt32(value: number): boolean {
  return (value | 0) === value && !Object.is(value, -0);
}

/** The BSON type of an engine value; `missing` for undefined. */
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

/** True for values of all four numeric types. */
export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint' || (isBson(value) && rankOf(value) === NUMBER_RANK);
}

function isBson(value: unknown): value is { _bsontype: string } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isDocument(value);
}

/** True for a Decimal128, by its tag. */
export function isDecimal(value: unknown): value is Decimal128 {
  return typeof value === 'object' && value !== null && typeOf(value) === 'decimal';
}

/** True for a wrapped `Double`; most doubles are plain numbers. */
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

/** A copy of the top level, with the prototype-named field kept as data. */
export function copyDoc(doc: Doc): Doc {
  const copy: Doc = { ...doc };
  if (Object.hasOwn(doc, '__proto__')) setField(copy, '__proto__', doc['__proto__']);
  return copy;
}
