import type { Binary, BSONRegExp, BSONSymbol, Code, DBRef, Decimal128, Double, ObjectId, Timestamp } from 'bson';
import type { Doc } from '../../codec/document.js';
import {
  canonicalDecimal,
  compareDecimals,
  decimalOf,
  decimalToBigint,
  decimalToNumber,
  isIntegralDecimal,
  openDecimal,
} from './decimal.js';
import { isDecimal, isDouble, typeOf } from './value.js';

/** Result of `keyOf`: usable as the key of a Map. */
export type ValueKey = string | number | bigint | boolean | null | undefined;

/**
 * A Map key that two values share exactly when they are equal in BSON order's sense (numbers of all types included).
 * Strings, numbers, booleans, null and missing stand for themselves; everything else becomes a tagged string.
 */
export function keyOf(value: unknown): ValueKey {
  switch (typeof value) {
    case 'number':
    case 'boolean':
    case 'undefined':
      return value;
    case 'string':
      return value.charCodeAt(0) === 0 ? `\0s${value}` : value;
    case 'bigint':
      return numberKey(value);
    default:
      if (value === null) return null;
  }
  if (isDouble(value)) return value.value;
  if (isDecimal(value)) return numberKey(value);
  return `\0${tagged(value)}`;
}

function numberKey(value: bigint | Decimal128): ValueKey {
  if (typeof value === 'bigint') {
    const near = Number(value);
    return BigInt(near) === value ? near : value;
  }
  const decimal = openDecimal(value);
  const near = decimalToNumber(decimal);
  if (!Number.isFinite(near)) {
    return decimal.special === 'none' ? `\0d${canonicalDecimal(decimal)}` : near;
  }
  if (compareDecimals(decimal, decimalOf(near)) === 0) return near;
  const whole = isIntegralDecimal(decimal) ? decimalToBigint(decimal) : null;
  if (whole !== null && BigInt.asIntN(64, whole) === whole) return whole;
  return `\0d${canonicalDecimal(decimal)}`;
}

/** A self-delimiting text, so that concatenations of it stay unambiguous. */
function tagged(value: unknown): string {
  switch (typeof value) {
    case 'number':
      return `n${value === 0 ? '0' : String(value)};`;
    case 'boolean':
      return value ? 't' : 'f';
    case 'undefined':
      return 'u';
    case 'string':
      return `s${String(value.length)}:${value}`;
    case 'bigint': {
      const key = numberKey(value);
      return typeof key === 'number' ? tagged(key) : `n${String(key)};`;
    }
    default:
      if (value === null) return '0';
  }
  switch (typeOf(value)) {
    case 'array':
      return `[${(value as unknown[]).map(tagged).join('')}]`;
    case 'object': {
      let text = '{';
      for (const name of Object.keys(value as Doc)) {
        text += `${String(name.length)}:${name}${tagged((value as Doc)[name])}`;
      }
      return `${text}}`;
    }
    case 'date':
      return `D${String((value as Date).getTime())};`;
    case 'objectId':
      return `O${(value as ObjectId).toHexString()}`;
    case 'binData':
      return `B${String((value as Binary).sub_type)}:${tagged(Buffer.from((value as Binary).value()).toString('latin1'))}`;
    case 'double':
      return tagged((value as Double).value);
    case 'decimal': {
      const key = numberKey(value as Decimal128);
      return typeof key === 'number' ? tagged(key) : `n${String(key)};`;
    }
    case 'symbol':
      return tagged((value as BSONSymbol).value);
    case 'timestamp':
      return `T${String((value as Timestamp).t)}.${String((value as Timestamp).i)};`;
    case 'regex':
      return `R${tagged((value as BSONRegExp).pattern)}${tagged((value as BSONRegExp).options)}`;
    case 'dbPointer':
      return `P${tagged((value as DBRef).collection)}${tagged((value as DBRef).oid)}`;
    case 'minKey':
      return '<';
    case 'maxKey':
      return '>';
    default:
      return `C${tagged((value as Code).code)}${tagged((value as Code).scope ?? null)}`;
  }
}
