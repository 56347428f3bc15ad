import type { Binary, BSONRegExp, BSONSymbol, Code, DBRef, Decimal128, Double, ObjectId, Timestamp } from 'bson';
import type { Doc } from '../../codec/document.js';
import { compareDecimals, decimalOf, openDecimal } from './decimal.js';
import { isDouble, NUMBER_RANK, rankOf, typeOf } from './value.js';

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
  if (x == y) return 0; // oxlint-disable-line eslint/eqeqeq -- compares a bigint with a number exactly
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
    case 14: {
      const collections = compareStrings((a as DBRef).collection, (b as DBRef).collection);
      return collections === 0 ? compareBytes((a as DBRef).oid.id, (b as DBRef).oid.id) : collections;
    }
    case 15:
      return compareStrings((a as Code).code, (b as Code).code);
    case 16: {
      const codes = compareStrings((a as Code).code, (b as Code).code);
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

/** True for values that BSON order does not tell apart: numbers of different types may be equal. */
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
