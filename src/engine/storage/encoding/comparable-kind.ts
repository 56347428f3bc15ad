import type { Decimal128, Double } from 'bson';
import { BINARY, BOOLEAN, DATE, DOCUMENT, NUMBER, OBJECT_ID, TEXT, TIMESTAMP } from './key-kinds.js';

/**
 * The bytes that begin every value comparable with `value` in a range query ($gt and its family look at one type only),
 * as [first, after last]; null for values that bound nothing an index could use.
 */
export function comparableKind(value: unknown): readonly [number, number] | null {
  switch (typeof value) {
    case 'string':
      return [TEXT, TEXT + 1];
    case 'number':
      return Number.isNaN(value) ? null : [NUMBER, NUMBER + 1];
    case 'bigint':
      return [NUMBER, NUMBER + 1];
    case 'boolean':
      return [BOOLEAN, BOOLEAN + 1];
    default:
      break;
  }
  if (value === null || value === undefined || typeof value !== 'object' || Array.isArray(value)) return null;
  if (value instanceof Date) return [DATE, DATE + 1];
  switch ((value as { _bsontype?: unknown })._bsontype) {
    case undefined:
      return [DOCUMENT, DOCUMENT + 1];
    case 'Double':
      return Number.isNaN((value as Double).value) ? null : [NUMBER, NUMBER + 1];
    case 'Decimal128':
      return (value as Decimal128).toString() === 'NaN' ? null : [NUMBER, NUMBER + 1];
    case 'BSONSymbol':
      return [TEXT, TEXT + 1];
    case 'ObjectId':
      return [OBJECT_ID, OBJECT_ID + 1];
    case 'Binary':
      return [BINARY, BINARY + 1];
    case 'Timestamp':
      return [TIMESTAMP, TIMESTAMP + 1];
    default:
      return null;
  }
}
