import {
  addDecimals,
  closeDecimal,
  type Decimal,
  decimalOf,
  multiplyDecimals,
  negateDecimal,
  openDecimal,
} from './decimal.js';
import { isDecimal, isInt32, numberOf, toDouble } from './value.js';

/** A number's BSON type; operands of two types meet at the wider one, in this order. */
export type NumberKind = 'int' | 'long' | 'double' | 'decimal';

/** Null for what is no number. */
export function kindOf(value: unknown): NumberKind | null {
  if (typeof value === 'number') return isInt32(value) ? 'int' : 'double';
  if (typeof value === 'bigint') return 'long';
  if (typeof value !== 'object' || value === null) return null;
  if (isDecimal(value)) return 'decimal';
  return numberOf(value) === null ? null : 'double';
}

/** A double counts with its 15 significant digits, as MongoDB's conversion does. */
export function toDecimal(value: unknown): Decimal {
  if (isDecimal(value)) return openDecimal(value);
  return decimalOf(typeof value === 'bigint' ? value : numberOf(value)!, 15);
}

/** The way out when the exact result does not fit 64 bits. */
export type Overflow = (exact: bigint) => unknown;

export const overflowToDouble: Overflow = (exact) => toDouble(Number(exact));

/** Narrows an exact integer: an int when both operands were and it fits, else a long, else whatever `overflow` says. */
export function narrow(exact: bigint, wide: boolean, overflow: Overflow): unknown {
  if (!wide && exact >= -2147483648n && exact <= 2147483647n) return Number(exact);
  return BigInt.asIntN(64, exact) === exact ? exact : overflow(exact);
}

function arithmetic(
  plain: (a: number, b: number) => number,
  exact: (a: bigint, b: bigint) => bigint,
  decimal: (a: Decimal, b: Decimal) => Decimal,
) {
  return (a: unknown, b: unknown, overflow: Overflow = overflowToDouble): unknown => {
    if (typeof a === 'number' && typeof b === 'number') {
      if (!isInt32(a) || !isInt32(b)) return toDouble(plain(a, b));
      const result = plain(a, b) + 0;
      if (isInt32(result)) return result;
    }
    if (isDecimal(a) || isDecimal(b)) return closeDecimal(decimal(toDecimal(a), toDecimal(b)));
    const kindA = kindOf(a);
    const kindB = kindOf(b);
    if (kindA === 'double' || kindB === 'double') return toDouble(plain(numberOf(a)!, numberOf(b)!));
    const wide = kindA === 'long' || kindB === 'long';
    return narrow(exact(BigInt(a as bigint | number), BigInt(b as bigint | number)), wide, overflow);
  };
}

/** Both operands must be numbers. */
export const addNumbers = arithmetic(
  (a, b) => a + b,
  (a, b) => a + b,
  addDecimals,
);

export const subtractNumbers = arithmetic(
  (a, b) => a - b,
  (a, b) => a - b,
  (a, b) => addDecimals(a, negateDecimal(b)),
);

export const multiplyNumbers = arithmetic(
  (a, b) => a * b,
  (a, b) => a * b,
  multiplyDecimals,
);
