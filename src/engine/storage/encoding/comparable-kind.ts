import type { Decimal128, Double } from 'bson';
import { bsonType } from '../../codec/document.js';
import {
  BINARY_KIND,
  BOOLEAN_KIND,
  DATE_KIND,
  DOCUMENT_KIND,
  NUMBER_KIND,
  OBJECT_ID_KIND,
  TEXT_KIND,
  TIMESTAMP_KIND,
} from './key-kinds.js';

/**
 * The bytes that begin every value comparable with `value` in a range query ($gt and its family look at one type only),
 * as [first, after last]; null for values that bound nothing an index could use.
 */
export function comparableKind(value: unknown): readonly [number, number] | null {
  switch (typeof value) {
    case 'string':
      return [TEXT_KIND, TEXT_KIND + 1];
    case 'number':
      return Number.isNaN(value) ? null : [NUMBER_KIND, NUMBER_KIND + 1];
    case 'bigint':
      return [NUMBER_KIND, NUMBER_KIND + 1];
    case 'boolean':
      return [BOOLEAN_KIND, BOOLEAN_KIND + 1];
    default:
      break;
  }
  if (value === null || value === undefined || typeof value !== 'object' || Array.isArray(value)) return null;
  if (value instanceof Date) return [DATE_KIND, DATE_KIND + 1];
  switch (bsonType(value)) {
    case undefined:
      return [DOCUMENT_KIND, DOCUMENT_KIND + 1];
    case 'Double':
      return Number.isNaN((value as Double).value) ? null : [NUMBER_KIND, NUMBER_KIND + 1];
    case 'Decimal128':
      return (value as Decimal128).toString() === 'NaN' ? null : [NUMBER_KIND, NUMBER_KIND + 1];
    case 'BSONSymbol':
      return [TEXT_KIND, TEXT_KIND + 1];
    case 'ObjectId':
      return [OBJECT_ID_KIND, OBJECT_ID_KIND + 1];
    case 'Binary':
      return [BINARY_KIND, BINARY_KIND + 1];
    case 'Timestamp':
      return [TIMESTAMP_KIND, TIMESTAMP_KIND + 1];
    default:
      return null;
  }
}
