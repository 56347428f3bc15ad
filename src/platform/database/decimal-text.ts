const BIAS = 6176;
const MAX_DIGITS = 34;
/** The four bits after the sign of values that are infinite, no number, or of a non-canonical form. */
const SPECIAL = 0x60000000;
const HIGH_WORD = 2 ** 32;

/**
 * The text of the Decimal128 whose sixteen bytes begin at `at`, as the type's `toString` has it, at a tenth of its
 * cost. Null for infinities, NaN and non-canonical forms.
 */
export function decimalText(source: Buffer, at: number): string | null {
  const high = source.readUInt32LE(at + 12);
  if ((high & SPECIAL) === SPECIAL) return null;
  const digits = digitsOf(source, at, high & 0x1ffff);
  if (digits.length > MAX_DIGITS) return null;
  const sign = high >= 0x80000000 ? '-' : '';
  const exponent = ((high >>> 17) & 0x3fff) - BIAS;
  const scientific = digits.length - 1 + exponent;
  if (scientific >= MAX_DIGITS || scientific <= -7 || exponent > 0) {
    const point = digits.length > 1 ? '.' : '';
    return `${sign}${digits[0]}${point}${digits.slice(1)}E${scientific > 0 ? '+' : ''}${scientific}`;
  }
  if (exponent === 0) return sign + digits;
  const point = digits.length + exponent;
  if (point > 0) return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
  return `${sign}0.${'0'.repeat(-point)}${digits}`;
}

const parts = new Float64Array(4);
/** With it a remainder and a word of 32 bits stay exact in a number. */
const STEP = 1_000_000;

function digitsOf(source: Buffer, at: number, high: number): string {
  const middle = source.readUInt32LE(at + 8);
  const low = source.readUInt32LE(at + 4);
  const lowest = source.readUInt32LE(at);
  if (high === 0 && middle === 0 && low < 0x200000) return String(low * HIGH_WORD + lowest);
  parts[0] = high;
  parts[1] = middle;
  parts[2] = low;
  parts[3] = lowest;
  let text = '';
  for (let first = 0; first < 4;) {
    let rest = 0;
    for (let n = first; n < 4; n++) {
      const value = rest * HIGH_WORD + parts[n]!;
      const quotient = Math.floor(value / STEP);
      rest = value - quotient * STEP;
      parts[n] = quotient;
    }
    while (first < 4 && parts[first] === 0) first++;
    text = (first < 4 ? String(rest + STEP).slice(1) : String(rest)) + text;
  }
  return text;
}
