import { type Doc, isDocument } from '../../codec/document.js';
import { compareValues } from '../values/compare.js';
import { closeDecimal, decimalOf, divideDecimals } from '../values/decimal.js';
import { isNullish, numberOf, toDouble } from '../values/value.js';
import { keyOf } from '../values/value-key.js';
import { weigh } from '../values/weight.js';
import { mergeInto } from './object.js';
import { Total } from './total.js';

/** The state of an accumulator for one group. */
export interface Accumulation {
  /** Returns by how many bytes it holds more now. */
  add(value: unknown): number;
  result(): unknown;
}

/** A sum; values that are no numbers count as nothing. */
export function openSum(): Accumulation {
  return new Total();
}

/** An average; null of no numbers. */
export function openAverage(): Accumulation {
  const total = new Total();
  return {
    add: (value) => total.add(value),
    result() {
      if (total.count === 0) return null;
      const decimal = total.asDecimal();
      if (decimal !== null) return closeDecimal(divideDecimals(decimal, decimalOf(total.count)));
      return toDouble(total.asNumber() / total.count);
    },
  };
}

/** The largest (1) or smallest (-1) value in BSON order; null and missing ones do not take part. */
export function openExtreme(direction: 1 | -1): () => Accumulation {
  return () => {
    let best: unknown = null;
    return {
      add(value) {
        if (isNullish(value) || (best !== null && compareValues(value, best) * direction <= 0)) return 0;
        const held = weigh(value) - weigh(best);
        best = value;
        return held;
      },
      result: () => best,
    };
  };
}

/**
 * Standard deviation; too few numbers give null. As long as all are integers whose squares add up exactly, the sums
 * are kept, otherwise Welford's method.
 */
export function openDeviation(sample: boolean): () => Accumulation {
  return () => {
    let count = 0;
    let mean = 0;
    let squaredDeltas = 0;
    let sum = 0;
    let squares = 0;
    let isExact = true;
    return {
      add(value) {
        const number = numberOf(value);
        if (number === null) return 0;
        count++;
        const delta = number - mean;
        mean += delta / count;
        squaredDeltas += delta * (number - mean);
        sum += number;
        squares += number * number;
        isExact &&=
          Number.isInteger(number) && Number.isSafeInteger(squares * count) && Number.isSafeInteger(sum * sum);
        return 0;
      },
      result() {
        const divisor = sample ? count - 1 : count;
        if (divisor < 1) return null;
        const variance = isExact ? (squares * count - sum * sum) / (count * divisor) : squaredDeltas / divisor;
        return toDouble(Math.sqrt(variance));
      },
    };
  };
}

/** The first value; null when it is missing. */
export function openFirst(): Accumulation {
  let value: unknown;
  let seen = false;
  return {
    add(next) {
      if (seen) return 0;
      seen = true;
      value = next;
      return weigh(value);
    },
    result: () => value ?? null,
  };
}

/** The last value; null when it is missing. */
export function openLast(): Accumulation {
  let value: unknown;
  return {
    add(next) {
      const held = weigh(next) - weigh(value);
      value = next;
      return held;
    },
    result: () => value ?? null,
  };
}

/** All values in their order, without missing ones. */
export function openPush(): Accumulation {
  const values: unknown[] = [];
  return {
    add(value) {
      if (value === undefined) return 0;
      values.push(value);
      return 16 + weigh(value);
    },
    result: () => values,
  };
}

/** The different values in the order of their first appearance; equal numbers of two types are one. */
export function openAddToSet(): Accumulation {
  const values = new Map<unknown, unknown>();
  return {
    add(value) {
      if (value === undefined) return 0;
      const key = keyOf(value);
      if (values.has(key)) return 0;
      values.set(key, value);
      return 48 + weigh(value);
    },
    result: () => [...values.values()],
  };
}

/** The fields of all documents, the last value of each; 40400 for what is no document. */
export function openMergeObjects(): Accumulation {
  const merged: Doc = {};
  return {
    add(value) {
      let held = 0;
      if (isDocument(value)) {
        for (const name of Object.keys(value)) {
          held += weigh(value[name]) - (Object.hasOwn(merged, name) ? weigh(merged[name]) : -8 - name.length);
        }
      }
      mergeInto(merged, value);
      return held;
    },
    result: () => merged,
  };
}

/** Values that an accumulator of `count` holds beyond those, so that it sorts once for many instead of for each. */
const SPARE = 64;

/** Keeps `count` of the values in order: those that go first. */
export function openBest<T>(count: number, order: (a: T, b: T) => number) {
  let values: T[] = [];
  let last: T | undefined;
  const settle = (): number => {
    values.sort(order);
    const dropped = values.slice(count);
    if (dropped.length > 0) values = values.slice(0, count);
    if (values.length === count) last = values[count - 1];
    return sumOf(dropped);
  };
  return {
    add(value: T): number {
      if (last !== undefined && order(value, last) >= 0) return 0;
      const held = 16 + weigh(value);
      return values.push(value) < count * 2 + SPARE ? held : held - settle();
    },
    result: (): readonly T[] => {
      settle();
      return values;
    },
  };
}

function sumOf(values: readonly unknown[]): number {
  return values.reduce<number>((sum, value) => sum + 16 + weigh(value), 0);
}

function openMinN(count: number, direction: 1 | -1): Accumulation {
  const best = openBest<unknown>(count, (a, b) => compareValues(a, b) * direction);
  return { add: (value) => (isNullish(value) ? 0 : best.add(value)), result: best.result };
}

function openFirstN(count: number): Accumulation {
  const values: unknown[] = [];
  return {
    add(value) {
      if (values.length === count) return 0;
      values.push(value ?? null);
      return 16 + weigh(value);
    },
    result: () => values,
  };
}

function openLastN(count: number): Accumulation {
  const values: unknown[] = [];
  return {
    add(value) {
      const held = 16 + weigh(value);
      if (values.push(value ?? null) < count * 2 + SPARE) return held;
      return held - sumOf(values.splice(0, values.length - count));
    },
    result: () => values.slice(-count),
  };
}

/** The accumulations of several values, by the operator's name. */
export const SEVERAL: Readonly<Record<string, (count: number) => Accumulation>> = {
  $firstN: openFirstN,
  $lastN: openLastN,
  $minN: (count) => openMinN(count, 1),
  $maxN: (count) => openMinN(count, -1),
};

/** The values at the given fractions: of the sorted numbers the one at which the fraction is reached. */
export function percentilesOf(numbers: readonly number[], fractions: readonly number[]): unknown[] {
  const sorted = Float64Array.from(numbers).sort();
  return fractions.map((fraction) => {
    if (sorted.length === 0) return null;
    const rank = Math.max(0, Math.ceil(fraction * sorted.length) - 1);
    return toDouble(sorted[Math.min(rank, sorted.length - 1)]!);
  });
}

/** An accumulator over the items of one list, as the expression operators of the same names have it. */
export function accumulateAll(open: () => Accumulation, values: Iterable<unknown>): unknown {
  const accumulation = open();
  for (const value of values) accumulation.add(value);
  return accumulation.result();
}
