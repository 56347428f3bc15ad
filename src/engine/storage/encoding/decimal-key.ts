import type { Decimal128 } from 'bson';

/** Two decimals that share their nearest double differ within far fewer digits than this. */
const REMAINDER_DIGITS = 60;
const EXPONENT_OFFSET = 0x4000;
const EXACT = Uint8Array.of(0x80);

/** An exact decimal number: `coefficient * 10 ** exponent`. */
interface ExactDecimal {
  coefficient: bigint;
  exponent: number;
}

/**
 * The sort key of a number that a double may not hold: the nearest double, and bytes that order the numbers sharing
 * that double by their exact difference from it (0x80 alone when there is none).
 */
export function decimalKeyParts(value: Decimal128 | bigint): { nearest: number; remainder: Uint8Array } {
  if (typeof value === 'bigint') {
    const nearest = Number(value);
    return { nearest, remainder: encodeRemainder({ coefficient: value - BigInt(nearest), exponent: 0 }) };
  }
  const text = value.toString();
  if (text === 'NaN') return { nearest: NaN, remainder: EXACT };
  if (text === 'Infinity') return { nearest: Infinity, remainder: EXACT };
  if (text === '-Infinity') return { nearest: -Infinity, remainder: EXACT };
  const nearest = clampToFinite(Number(text));
  return { nearest, remainder: encodeRemainder(subtract(parseDecimal(text), exactDouble(nearest))) };
}

function clampToFinite(value: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, value));
}

function parseDecimal(text: string): ExactDecimal {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { coefficient: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

function exactDouble(value: number): ExactDecimal {
  if (Number.isInteger(value)) return { coefficient: BigInt(value), exponent: 0 };
  // A double is m / 2**k; m / 2**k = m * 5**k / 10**k.
  let scaled = value;
  let power = 0;
  while (!Number.isInteger(scaled)) {
    scaled *= 2;
    power++;
  }
  return { coefficient: BigInt(scaled) * 5n ** BigInt(power), exponent: -power };
}

function subtract(a: ExactDecimal, b: ExactDecimal): ExactDecimal {
  const exponent = Math.min(a.exponent, b.exponent);
  const left = a.coefficient * 10n ** BigInt(a.exponent - exponent);
  const right = b.coefficient * 10n ** BigInt(b.exponent - exponent);
  return { coefficient: left - right, exponent };
}

function encodeRemainder({ coefficient, exponent }: ExactDecimal): Uint8Array {
  if (coefficient === 0n) return EXACT;
  const negative = coefficient < 0n;
  const digits = (negative ? -coefficient : coefficient).toString();
  const magnitude = exponent + digits.length + EXPONENT_OFFSET;
  const kept = digits.slice(0, REMAINDER_DIGITS).replace(/0+$/, '');
  const bytes = Uint8Array.from([
    magnitude >> 8,
    magnitude & 0xff,
    ...Array.from(kept, (digit) => Number(digit) + 1),
    0,
  ]);
  return Uint8Array.from([negative ? 0x7f : 0x81, ...(negative ? bytes.map((byte) => 255 - byte) : bytes)]);
}
