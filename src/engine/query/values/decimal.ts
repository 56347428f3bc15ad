import { Decimal128 } from '../../codec/bson.js';

/**
 * A Decimal128 taken apart: `coefficient * 10^exponent`, or one of the three special values.
 * The sign is kept apart so that -0 survives.
 */
export interface Decimal {
  readonly special: 'none' | 'nan' | 'infinity';
  readonly negative: boolean;
  readonly coefficient: bigint;
  readonly exponent: number;
}

const MAX_DIGITS = 34;
const MAX_COEFFICIENT = 10n ** 34n - 1n;
const MAX_EXPONENT = 6111;
const MIN_EXPONENT = -6176;
const BIAS = 6176n;

const NAN_DECIMAL: Decimal = { special: 'nan', negative: false, coefficient: 0n, exponent: 0 };

function finite(negative: boolean, coefficient: bigint, exponent: number): Decimal {
  return { special: 'none', negative, coefficient, exponent };
}

function infinity(negative: boolean): Decimal {
  return { special: 'infinity', negative, coefficient: 0n, exponent: 0 };
}

/** Reads the binary integer decimal encoding that the `bson` class holds. */
export function openDecimal(value: Decimal128): Decimal {
  const view = new DataView(value.bytes.buffer, value.bytes.byteOffset, 16);
  const low = view.getBigUint64(0, true);
  const high = view.getBigUint64(8, true);
  const negative = high >> 63n === 1n;
  const combination = (high >> 58n) & 0x1fn;
  if (combination === 0x1fn) return NAN_DECIMAL;
  if (combination === 0x1en) return infinity(negative);
  if (((high >> 61n) & 3n) === 3n) {
    // The second form's coefficient always exceeds 34 digits: the value is defined to be zero.
    return finite(negative, 0n, Number(((high >> 47n) & 0x3fffn) - BIAS));
  }
  const coefficient = ((high & 0x1ffffffffffffn) << 64n) | low;
  return finite(negative, coefficient > MAX_COEFFICIENT ? 0n : coefficient, Number(((high >> 49n) & 0x3fffn) - BIAS));
}

/** Rounds to 34 digits (half to even), clamps the exponent and encodes. */
export function closeDecimal(value: Decimal): Decimal128 {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  const sign = value.negative ? 1n << 63n : 0n;
  if (value.special === 'nan') {
    view.setBigUint64(8, 0x7c00000000000000n, true);
  } else if (value.special === 'infinity') {
    view.setBigUint64(8, sign | 0x7800000000000000n, true);
  } else {
    const fitted = fitDecimal(value);
    if (fitted.special === 'infinity') {
      view.setBigUint64(8, sign | 0x7800000000000000n, true);
    } else {
      view.setBigUint64(0, fitted.coefficient & 0xffffffffffffffffn, true);
      view.setBigUint64(8, sign | ((BigInt(fitted.exponent) + BIAS) << 49n) | (fitted.coefficient >> 64n), true);
    }
  }
  return new Decimal128(bytes);
}

function digitsOf(coefficient: bigint): number {
  return coefficient === 0n ? 1 : coefficient.toString().length;
}

/** A value cut to 128 bits: 34 digits (rounded half to even) and an exponent in range. */
export function fitDecimal(value: Decimal): Decimal {
  if (value.special !== 'none') return value;
  let { coefficient, exponent } = value;
  const digits = digitsOf(coefficient);
  const excess = Math.max(digits - MAX_DIGITS, MIN_EXPONENT - exponent, 0);
  if (excess > 0) {
    coefficient = divideHalfEven(coefficient, 10n ** BigInt(Math.min(excess, digits + 1)));
    exponent += excess;
    if (coefficient > MAX_COEFFICIENT) {
      coefficient /= 10n;
      exponent += 1;
    }
  }
  if (exponent > MAX_EXPONENT) {
    if (coefficient === 0n) {
      exponent = MAX_EXPONENT;
    } else {
      const room = MAX_DIGITS - digitsOf(coefficient);
      if (exponent - MAX_EXPONENT > room) return infinity(value.negative);
      coefficient *= 10n ** BigInt(exponent - MAX_EXPONENT);
      exponent = MAX_EXPONENT;
    }
  }
  return finite(value.negative, coefficient, exponent);
}

function divideHalfEven(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  const twice = (dividend % divisor) * 2n;
  if (twice > divisor || (twice === divisor && (quotient & 1n) === 1n)) return quotient + 1n;
  return quotient;
}

/**
 * Exact for int64; a double is rounded to 15 significant digits when `digits` is given, as MongoDB's conversions do.
 */
export function decimalOf(value: number | bigint, digits?: number): Decimal {
  if (typeof value === 'bigint') return finite(value < 0n, value < 0n ? -value : value, 0);
  if (Number.isNaN(value)) return NAN_DECIMAL;
  if (!Number.isFinite(value)) return infinity(value < 0);
  if (Number.isSafeInteger(value)) {
    return finite(value < 0 || Object.is(value, -0), BigInt(Math.abs(value)), 0);
  }
  return digits === undefined ? exactDecimal(value) : parseDecimal(value.toPrecision(digits), true)!;
}

function exactDecimal(value: number): Decimal {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Math.abs(value));
  const bits = view.getBigUint64(0);
  const biased = Number(bits >> 52n);
  const mantissa = biased === 0 ? bits & 0xfffffffffffffn : (bits & 0xfffffffffffffn) | 0x10000000000000n;
  const power = (biased === 0 ? 1 : biased) - 1075;
  const negative = value < 0;
  return power >= 0
    ? finite(negative, mantissa << BigInt(power), 0)
    : finite(negative, mantissa * 5n ** BigInt(-power), power);
}

/** More digits than this are not read one by one: they only matter for rounding to 34. */
const READ_DIGITS = 40;

/**
 * Parses a number's text; null when it is none. `shorten` drops trailing zeros after the point. What lies beyond 40
 * digits is cut to one that rounds the same way.
 */
export function parseDecimal(text: string, shorten = false): Decimal | null {
  const match = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d{1,6}))?$/.exec(text);
  if (match === null) {
    const special = /^([+-]?)(inf(?:inity)?|nan)$/i.exec(text);
    if (special === null) return null;
    return special[2]!.toLowerCase() === 'nan' ? NAN_DECIMAL : infinity(special[1] === '-');
  }
  const fraction = match[3] ?? match[4] ?? '';
  const digits = ((match[2] ?? '') + fraction).replace(/^0+/, '');
  let exponent = Number(match[5] ?? 0) - fraction.length;
  let read = digits;
  if (digits.length > READ_DIGITS) {
    read = digits.slice(0, READ_DIGITS) + (/[1-9]/.test(digits.slice(READ_DIGITS)) ? '1' : '0');
    exponent += digits.length - read.length;
  }
  let coefficient = BigInt(read);
  if (shorten) {
    while (exponent < 0 && coefficient % 10n === 0n && coefficient !== 0n) {
      coefficient /= 10n;
      exponent += 1;
    }
  }
  return finite(match[1] === '-', coefficient, exponent);
}

/** True for zeros of both signs and any exponent. */
export function isZero(value: Decimal): boolean {
  return value.special === 'none' && value.coefficient === 0n;
}

function signed(value: Decimal): bigint {
  return value.negative ? -value.coefficient : value.coefficient;
}

/** NaN is the smallest number and equal to itself, as in BSON order. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  if (a.special === 'nan' || b.special === 'nan') {
    return (a.special === 'nan' ? 0 : 1) - (b.special === 'nan' ? 0 : 1);
  }
  const weightA = a.special === 'infinity' ? (a.negative ? -1 : 1) : 0;
  const weightB = b.special === 'infinity' ? (b.negative ? -1 : 1) : 0;
  if (weightA !== 0 || weightB !== 0) return Math.sign(weightA - weightB);
  const left = signed(a);
  const right = signed(b);
  const signA = left < 0n ? -1 : left > 0n ? 1 : 0;
  const signB = right < 0n ? -1 : right > 0n ? 1 : 0;
  if (signA !== signB) return signA < signB ? -1 : 1;
  if (signA === 0) return 0;
  const magnitudeA = digitsOf(a.coefficient) + a.exponent;
  const magnitudeB = digitsOf(b.coefficient) + b.exponent;
  if (magnitudeA !== magnitudeB) return magnitudeA < magnitudeB ? -signA : signA;
  const shift = a.exponent - b.exponent;
  const scaledA = shift > 0 ? left * 10n ** BigInt(shift) : left;
  const scaledB = shift < 0 ? right * 10n ** BigInt(-shift) : right;
  return scaledA < scaledB ? -1 : scaledA > scaledB ? 1 : 0;
}

/** The sum, rounded to 34 digits; NaN for infinities of both signs. */
export function addDecimals(a: Decimal, b: Decimal): Decimal {
  if (a.special === 'nan' || b.special === 'nan') return NAN_DECIMAL;
  if (a.special === 'infinity') return b.special === 'infinity' && a.negative !== b.negative ? NAN_DECIMAL : a;
  if (b.special === 'infinity') return b;
  const exponent = Math.min(a.exponent, b.exponent);
  const spread = Math.max(a.exponent, b.exponent) - exponent;
  if (spread > 2 * MAX_DIGITS + 2) {
    // The smaller operand cannot touch any of the 34 digits of the larger one.
    const larger = a.exponent > b.exponent ? a : b;
    if (larger.coefficient !== 0n) return larger;
  }
  const sum = signed(a) * 10n ** BigInt(a.exponent - exponent) + signed(b) * 10n ** BigInt(b.exponent - exponent);
  const negative = sum < 0n || (sum === 0n && a.negative && b.negative);
  return finite(negative, sum < 0n ? -sum : sum, exponent);
}

/** The same with the other sign; NaN has none. */
export function negateDecimal(a: Decimal): Decimal {
  return a.special === 'nan' ? a : { ...a, negative: !a.negative };
}

/** The product, rounded to 34 digits; NaN for zero times infinity. */
export function multiplyDecimals(a: Decimal, b: Decimal): Decimal {
  if (a.special === 'nan' || b.special === 'nan') return NAN_DECIMAL;
  const negative = a.negative !== b.negative;
  if (a.special === 'infinity' || b.special === 'infinity') {
    return isZero(a) || isZero(b) ? NAN_DECIMAL : infinity(negative);
  }
  return finite(negative, a.coefficient * b.coefficient, a.exponent + b.exponent);
}

/** The quotient, rounded to 34 digits; infinite, or NaN of zero, when divided by zero. */
export function divideDecimals(a: Decimal, b: Decimal): Decimal {
  if (a.special === 'nan' || b.special === 'nan') return NAN_DECIMAL;
  const negative = a.negative !== b.negative;
  if (a.special === 'infinity') return b.special === 'infinity' ? NAN_DECIMAL : infinity(negative);
  if (b.special === 'infinity') return finite(negative, 0n, MIN_EXPONENT);
  if (b.coefficient === 0n) return a.coefficient === 0n ? NAN_DECIMAL : infinity(negative);
  const ideal = a.exponent - b.exponent;
  if (a.coefficient === 0n) return finite(negative, 0n, ideal);
  const shift = MAX_DIGITS + 2 + digitsOf(b.coefficient);
  const scaled = a.coefficient * 10n ** BigInt(shift);
  let quotient = scaled / b.coefficient;
  let exponent = ideal - shift;
  // A sticky last digit keeps the later rounding right when the division is not exact.
  if (scaled % b.coefficient !== 0n) {
    quotient = quotient * 10n + 1n;
    exponent -= 1;
  } else {
    while (exponent < ideal && quotient % 10n === 0n) {
      quotient /= 10n;
      exponent += 1;
    }
  }
  return finite(negative, quotient, exponent);
}

/** Remainder with the sign of the dividend. */
export function remainderDecimals(a: Decimal, b: Decimal): Decimal {
  if (a.special !== 'none' || b.special === 'nan' || isZero(b)) return NAN_DECIMAL;
  if (b.special === 'infinity') return a;
  const exponent = Math.min(a.exponent, b.exponent);
  const left = a.coefficient * 10n ** BigInt(a.exponent - exponent);
  const right = b.coefficient * 10n ** BigInt(b.exponent - exponent);
  return finite(a.negative, left % right, exponent);
}

/** Rounds at `place` digits after the point; `mode` is half-even rounding, cutting off, down or up. */
export function roundDecimal(a: Decimal, place: number, mode: 'round' | 'trunc' | 'floor' | 'ceil'): Decimal {
  if (a.special !== 'none' || a.exponent >= -place) return a;
  const divisor = 10n ** BigInt(Math.min(-place - a.exponent, 100));
  let quotient = mode === 'round' ? divideHalfEven(a.coefficient, divisor) : a.coefficient / divisor;
  const rest = a.coefficient % divisor !== 0n;
  if (rest && ((mode === 'floor' && a.negative) || (mode === 'ceil' && !a.negative))) quotient += 1n;
  return finite(a.negative, quotient, -place);
}

/** The nearest double; infinite where it is too large for one. */
export function decimalToNumber(a: Decimal): number {
  if (a.special === 'nan') return NaN;
  if (a.special === 'infinity') return a.negative ? -Infinity : Infinity;
  return Number(`${a.negative ? '-' : ''}${a.coefficient.toString()}e${String(a.exponent)}`);
}

/** The integral part; null for NaN and the infinities, and for magnitudes far beyond int64. */
export function decimalToBigint(a: Decimal): bigint | null {
  if (a.special !== 'none' || (a.exponent > 40 && a.coefficient !== 0n)) return null;
  const whole =
    a.exponent >= 0
      ? a.coefficient * 10n ** BigInt(Math.min(a.exponent, 41))
      : a.exponent < -40
        ? 0n
        : a.coefficient / 10n ** BigInt(-a.exponent);
  return a.negative ? -whole : whole;
}

/** True for finite values without a fraction. */
export function isIntegralDecimal(a: Decimal): boolean {
  if (a.special !== 'none') return false;
  return (
    a.exponent >= 0 || a.coefficient === 0n || (a.exponent >= -40 && a.coefficient % 10n ** BigInt(-a.exponent) === 0n)
  );
}

/** A text that is the same for equal values (1, 1.0, 1.00). */
export function canonicalDecimal(a: Decimal): string {
  if (a.special !== 'none') return a.special === 'nan' ? 'nan' : a.negative ? '-inf' : 'inf';
  let { coefficient, exponent } = a;
  if (coefficient === 0n) return '0';
  while (coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent += 1;
  }
  return `${a.negative ? '-' : ''}${coefficient.toString()}e${String(exponent)}`;
}
