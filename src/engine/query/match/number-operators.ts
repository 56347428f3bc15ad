import type { Binary } from 'bson';
import { badValue } from '../../errors.js';
import { compareValues } from '../values/compare.js';
import { decimalToBigint, openDecimal } from '../values/decimal.js';
import { integerOf, isDecimal, isNumber, numberOf, typeOf } from '../values/value.js';

/** A test of single values, elements of arrays among them. */
interface NumberPredicate {
  readonly kind: 'leaf';
  readonly leafArrays: true;
  single(value: unknown): boolean;
}

function leaf(single: (value: unknown) => boolean): NumberPredicate {
  return { kind: 'leaf', leafArrays: true, single };
}

function wholeNumber(value: unknown, what: string): bigint {
  const number = numberOf(value);
  if (number === null) throw badValue(`malformed mod, ${what} not a number`);
  const whole = truncated(value);
  if (whole === null) throw badValue(`malformed mod, ${what} value is invalid: no 64-bit integer`);
  return whole;
}

/** A number cut to an integer; null for what is none or does not fit 64 bits. */
function truncated(value: unknown): bigint | null {
  let whole: bigint | null;
  if (typeof value === 'bigint') {
    whole = value;
  } else if (isDecimal(value)) {
    whole = decimalToBigint(openDecimal(value));
  } else {
    const number = numberOf(value);
    whole = number === null || !Number.isFinite(number) ? null : BigInt(Math.trunc(number));
  }
  return whole === null || BigInt.asIntN(64, whole) !== whole ? null : whole;
}

function bitTest(mode: 'allSet' | 'allClear' | 'anySet' | 'anyClear'): (operand: unknown) => NumberPredicate {
  return (operand) => {
    const positions = bitPositions(operand);
    return leaf((value) => {
      const isSet = bitReader(value);
      if (isSet === null) return false;
      switch (mode) {
        case 'allSet':
          return positions.every(isSet);
        case 'allClear':
          return !positions.some(isSet);
        case 'anySet':
          return positions.some(isSet);
        case 'anyClear':
          return !positions.every(isSet);
      }
    });
  };
}

function bitPositions(operand: unknown): number[] {
  if (Array.isArray(operand)) {
    return operand.map((item: unknown) => {
      const position = integerOf(item);
      if (position === null || position < 0 || position > 0x7fffffff) {
        throw badValue('bit positions must be 32-bit integers >= 0');
      }
      return position;
    });
  }
  const positions: number[] = [];
  if (typeOf(operand) === 'binData') {
    const isSet = bitReader(operand)!;
    const bits = (operand as Binary).value().length * 8;
    for (let i = 0; i < bits; i++) if (isSet(i)) positions.push(i);
    return positions;
  }
  const mask = isNumber(operand) ? integralBits(operand) : null;
  if (mask === null || mask < 0n) throw badValue('a bitmask must be a non-negative integer, an array or binary data');
  for (let i = 0; i < 64; i++) if ((mask >> BigInt(i)) & 1n) positions.push(i);
  return positions;
}

function integralBits(value: unknown): bigint | null {
  const whole = truncated(value);
  return whole !== null && compareValues(whole, value) === 0 ? whole : null;
}

function bitReader(value: unknown): ((position: number) => boolean) | null {
  if (typeof value === 'object' && value !== null && typeOf(value) === 'binData') {
    const bytes = (value as Binary).value();
    return (position) => ((bytes[position >> 3] ?? 0) & (1 << (position & 7))) !== 0;
  }
  const bits = isNumber(value) ? integralBits(value) : null;
  if (bits === null) return null;
  // Positions beyond 63 repeat the sign bit.
  return (position) => ((bits >> BigInt(Math.min(position, 63))) & 1n) === 1n;
}

/** The operators that look at the digits of numbers, by name. */
export const numberOperators = {
  $mod(operand: unknown): NumberPredicate {
    if (!Array.isArray(operand)) throw badValue('malformed mod, needs to be an array');
    if (operand.length < 2) throw badValue('malformed mod, not enough elements');
    if (operand.length > 2) throw badValue('malformed mod, too many elements');
    const divisor = wholeNumber(operand[0], 'divisor');
    const remainder = wholeNumber(operand[1], 'remainder');
    if (divisor === 0n) throw badValue('divisor cannot be 0');
    return leaf((value) => {
      if (!isNumber(value)) return false;
      const whole = truncated(value);
      return whole !== null && whole % divisor === remainder;
    });
  },
  $bitsAllSet: bitTest('allSet'),
  $bitsAllClear: bitTest('allClear'),
  $bitsAnySet: bitTest('anySet'),
  $bitsAnyClear: bitTest('anyClear'),
};
