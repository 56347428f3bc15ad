import type { Decimal128, Binary, BSONSymbol, Timestamp } from 'bson';
import { ObjectId } from '../../codec/bson.js';
import { badValue, CODES, failedToParse, refusal, EngineError } from '../../errors.js';
import { closeDecimal, decimalOf, decimalToBigint, openDecimal, parseDecimal } from '../values/decimal.js';
import { kindOf } from '../values/number.js';
import {
  findTypeByNumber,
  integerOf,
  isTruthy,
  isTypeName,
  numberOf,
  toDouble,
  type TypeName,
  typeOf,
  isNullish,
  isNumber,
} from '../values/value.js';
import { parseIsoDate } from './date-text.js';
import { isDocument } from '../../codec/document.js';
import { type ExpressionOperator, fold, namedOperand, type OperatorTable, unary } from './operator.js';

function failure(message: string): Error {
  return refusal(CODES.ConversionFailure, message);
}

/** So much of a text as a message can hold. */
export function shown(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

function cannot(value: unknown, target: string): Error {
  return failure(`Unsupported conversion from ${typeOf(value)} to ${target} in $convert with no onError value`);
}

/** A double's shortest text, with the sign of a zero and at least two digits in its exponent. */
function doubleText(number: number): string {
  return Object.is(number, -0) ? '-0' : String(number).replace(/e([+-])(\d)$/, 'e$10$2');
}

/** A value as `$toString` gives it. */
export function convertToString(value: unknown): string {
  switch (typeOf(value)) {
    case 'string':
      return value as string;
    case 'symbol':
      return (value as BSONSymbol).value;
    case 'bool':
    case 'int':
    case 'long':
      return String(value);
    case 'double':
      return doubleText(numberOf(value)!);
    case 'decimal':
      return (value as Decimal128).toString();
    case 'objectId':
      return (value as ObjectId).toHexString();
    case 'date': {
      const date = value as Date;
      if (Number.isNaN(date.getTime())) throw failure('cannot convert an invalid date');
      return date.toISOString();
    }
    case 'binData': {
      const binary = value as Binary;
      if (binary.sub_type === 4) return binary.toUUID().toString();
      return Buffer.from(binary.value()).toString('base64');
    }
    default:
      throw cannot(value, 'string');
  }
}

function toBool(value: unknown): boolean {
  const type = typeOf(value);
  if (type === 'bool') return value as boolean;
  if (kindOf(value) !== null) return isTruthy(value);
  if (type === 'string' || type === 'objectId' || type === 'date') return true;
  throw cannot(value, 'bool');
}

function toInteger(value: unknown, bits: 32 | 64): bigint {
  const target = bits === 32 ? 'int' : 'long';
  const inRange = (whole: bigint): bigint => {
    if (BigInt.asIntN(bits, whole) === whole) return whole;
    throw failure(`Conversion would overflow target type in $convert with no onError value: ${String(value)}`);
  };
  switch (typeOf(value)) {
    case 'bool':
      return value === true ? 1n : 0n;
    case 'int':
    case 'long':
      return inRange(BigInt(value as bigint | number));
    case 'double': {
      const number = numberOf(value)!;
      if (!Number.isFinite(number)) throw failure('Attempt to convert NaN or infinity value to integer type');
      return inRange(BigInt(Math.trunc(number)));
    }
    case 'decimal': {
      const whole = decimalToBigint(openDecimal(value as Decimal128));
      if (whole === null) throw failure('Attempt to convert NaN or infinity value to integer type');
      return inRange(whole);
    }
    case 'string': {
      const text = value as string;
      if (!/^[+-]?\d{1,30}$/.test(text)) {
        throw failure(
          `Failed to parse number '${shown(text)}' in $convert with no onError value: Bad digit or empty string`,
        );
      }
      return inRange(BigInt(text.replace(/^\+/, '')));
    }
    case 'date':
      if (bits === 64) return BigInt((value as Date).getTime());
      throw cannot(value, target);
    default:
      throw cannot(value, target);
  }
}

function toDoubleValue(value: unknown): unknown {
  if (kindOf(value) !== null) {
    const number = numberOf(value)!;
    if (
      typeOf(value) === 'decimal' &&
      !Number.isFinite(number) &&
      openDecimal(value as Decimal128).special === 'none'
    ) {
      throw failure('Conversion would overflow target type in $convert with no onError value');
    }
    return toDouble(number);
  }
  switch (typeOf(value)) {
    case 'bool':
      return toDouble(value === true ? 1 : 0);
    case 'date':
      return toDouble((value as Date).getTime());
    case 'string': {
      const text = value as string;
      const parsed = parseDecimal(text);
      if (parsed === null) throw failure(`Failed to parse number '${shown(text)}' in $convert with no onError value`);
      const number =
        parsed.special === 'none'
          ? Number(text)
          : parsed.special === 'nan'
            ? NaN
            : parsed.negative
              ? -Infinity
              : Infinity;
      if (parsed.special === 'none' && !Number.isFinite(number)) {
        throw failure(`Failed to parse number '${shown(text)}' in $convert with no onError value: Out of range`);
      }
      return toDouble(number);
    }
    default:
      throw cannot(value, 'double');
  }
}

function toDecimalValue(value: unknown): Decimal128 {
  switch (typeOf(value)) {
    case 'decimal':
      return value as Decimal128;
    case 'int':
    case 'long':
      return closeDecimal(decimalOf(BigInt(value as bigint | number)));
    case 'double':
      return closeDecimal(decimalOf(numberOf(value)!, 15));
    case 'bool':
      return closeDecimal(decimalOf(value === true ? 1 : 0));
    case 'date':
      return closeDecimal(decimalOf(BigInt((value as Date).getTime())));
    case 'string': {
      const parsed = parseDecimal(value as string);
      if (parsed === null) {
        throw failure(`Failed to parse number '${shown(value as string)}' in $convert with no onError value`);
      }
      return closeDecimal(parsed);
    }
    default:
      throw cannot(value, 'decimal');
  }
}

function toDate(value: unknown): Date {
  switch (typeOf(value)) {
    case 'date':
      return value as Date;
    case 'long':
    case 'double':
    case 'decimal': {
      const time = Math.trunc(numberOf(value)!);
      if (!(Math.abs(time) <= 8.64e15)) {
        throw failure('Conversion would overflow target type in $convert with no onError value');
      }
      return new Date(time);
    }
    case 'objectId':
      return (value as ObjectId).getTimestamp();
    case 'timestamp':
      return new Date((value as Timestamp).t * 1000);
    case 'string': {
      const date = parseIsoDate(value as string, 'UTC');
      if (date === null) throw failure(`Error parsing date string '${shown(value as string)}'`);
      return date;
    }
    default:
      throw cannot(value, 'date');
  }
}

function toObjectId(value: unknown): ObjectId {
  if (typeOf(value) === 'objectId') return value as ObjectId;
  if (typeof value !== 'string') throw cannot(value, 'objectId');
  if (!/^[0-9a-fA-F]{24}$/.test(value)) {
    throw failure(`Failed to parse objectId '${shown(value)}' in $convert with no onError value`);
  }
  return new ObjectId(value);
}

const CONVERSIONS: Readonly<Partial<Record<TypeName, (value: unknown) => unknown>>> = {
  bool: toBool,
  int: (value) => Number(toInteger(value, 32)),
  long: (value) => toInteger(value, 64),
  double: toDoubleValue,
  decimal: toDecimalValue,
  string: convertToString,
  date: toDate,
  objectId: toObjectId,
};

/** Converts a value that is neither null nor missing; what cannot be converted is refused with 241. */
function convertTo(value: unknown, target: TypeName): unknown {
  const convert = CONVERSIONS[target];
  if (convert === undefined) throw cannot(value, target);
  return convert(value);
}

/** The type that `$convert`'s `to` names, by alias or number. */
function parseTargetType(target: unknown): TypeName {
  if (typeof target === 'string') {
    if (isTypeName(target)) return target;
    throw badValue(`Unknown type name: ${target}`);
  }
  const found = findTypeByNumber(integerOf(target));
  if (found === null) throw failedToParse("In $convert, numeric 'to' argument is not a valid type");
  return found;
}

function conversion(target: TypeName): ExpressionOperator {
  return unary((value) => (isNullish(value) ? null : convertTo(value, target)));
}

const convert: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['input', 'to'], ['onError', 'onNull', 'format', 'byteOrder']);
  const input = compiler.compile(fields['input']);
  const target = compiler.compile(fields['to']);
  const onError = Object.hasOwn(fields, 'onError') ? compiler.compile(fields['onError']) : undefined;
  const onNull = Object.hasOwn(fields, 'onNull') ? compiler.compile(fields['onNull']) : undefined;
  return fold(
    (current, scope) => {
      const value = input.evaluate(current, scope);
      const to = target.evaluate(current, scope);
      if (isNullish(value)) return onNull === undefined ? null : onNull.evaluate(current, scope);
      if (isNullish(to)) return null;
      const type = parseTargetType(isDocument(to) ? to['type'] : to);
      try {
        return convertTo(value, type);
      } catch (error) {
        if (onError === undefined || !(error instanceof EngineError)) throw error;
        return onError.evaluate(current, scope);
      }
    },
    [input, target, onError, onNull],
  );
};

/** Types and conversions. */
export const typeOperators: OperatorTable = {
  $type: unary((value) => typeOf(value)),
  $isNumber: unary((value) => isNumber(value)),
  $convert: convert,
  $toBool: conversion('bool'),
  $toInt: conversion('int'),
  $toLong: conversion('long'),
  $toDouble: conversion('double'),
  $toDecimal: conversion('decimal'),
  $toString: conversion('string'),
  $toDate: conversion('date'),
  $toObjectId: conversion('objectId'),
};
