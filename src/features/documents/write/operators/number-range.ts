/** Numbers in the order of their values, as whole numbers that follow each other. */
const view = new DataView(new ArrayBuffer(8));
const SIGN = 1n << 63n;

function rankOf(value: number): bigint {
  view.setFloat64(0, value === 0 ? 0 : value);
  const bits = view.getBigUint64(0);
  return bits >= SIGN ? SIGN - bits : bits;
}

function numberAt(rank: bigint): number {
  view.setBigUint64(0, rank < 0n ? SIGN - rank : rank);
  return view.getFloat64(0);
}

const STEPS_FROM_GUESS = 8n;

/** The largest number that is admitted, where every smaller one is too; null when none is. */
function largest(guess: number, admits: (value: number) => boolean): number | null {
  const near = rankOf(Math.min(Math.max(guess, -Number.MAX_VALUE), Number.MAX_VALUE));
  let low = rankOf(-Number.MAX_VALUE);
  let high = rankOf(Number.MAX_VALUE);
  // Most guesses are right.
  if (near < high && admits(numberAt(near)) && !admits(numberAt(near + 1n))) return numberAt(near);
  if (!admits(numberAt(low))) return null;
  if (admits(numberAt(high))) return numberAt(high);
  // Near the guess as a rule: then few numbers are tried.
  const [below, above] = [near - STEPS_FROM_GUESS, near + STEPS_FROM_GUESS];
  if (below > low && admits(numberAt(below))) low = below;
  if (above < high && !admits(numberAt(above))) high = above;
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (admits(numberAt(middle))) low = middle;
    else high = middle;
  }
  return numberAt(low);
}

/** Bounds, both included. */
export interface NumberRange {
  from: number;
  to: number;
}

/** Arithmetic with one number: what it makes of another, and roughly what it made this of. */
export interface Arithmetic {
  apply: (stored: number) => number;
  guess: (result: number) => number;
  /** The sign of its slope; 0 = always the same. */
  slope: number;
}

/**
 * The numbers whose result lies in the range, exactly, with what rounding does at its ends: they are a range too, since
 * the results rise or fall throughout. Null for none.
 */
export function rangeBefore({ apply, guess, slope }: Arithmetic, { from, to }: NumberRange): NumberRange | null {
  if (slope === 0) {
    const result = apply(0);
    return result >= from && result <= to ? { from: -Number.MAX_VALUE, to: Number.MAX_VALUE } : null;
  }
  const rises = slope > 0;
  const upper = largest(guess(rises ? to : from), (value) => (rises ? apply(value) <= to : apply(value) >= from));
  // The smallest is minus the largest of the mirrored numbers.
  const lower = largest(-guess(rises ? from : to), (value) => (rises ? apply(-value) >= from : apply(-value) <= to));
  if (upper === null || lower === null || -lower > upper) return null;
  return { from: lower === 0 ? 0 : -lower, to: upper };
}
