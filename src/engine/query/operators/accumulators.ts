import { refusal } from '../../errors.js';
import { closeDecimal, decimalOf, divideDecimals } from '../decimal.js';
import { compileSort, type KeyTuple } from '../sort.js';
import { compareValues } from '../compare.js';
import { type Doc, integerOf, isDocument, isNullish, numberOf, toDouble } from '../value.js';
import { keyOf } from '../value-key.js';
import { weigh } from '../weight.js';
import { mergeInto } from './object.js';
import { type Compiled, type Compiler, type Evaluate, namedOperand, NO_SCOPE } from './operator.js';
import { Total } from './total.js';

/** What an accumulator has seen of one group. */
export interface Accumulation {
  /** Returns by how many bytes it holds more now. */
  add(value: unknown): number;
  result(): unknown;
}

/** A compiled accumulator: `evaluate` computes what is added for each document. */
export interface Accumulator {
  readonly evaluate: Evaluate;
  open(): Accumulation;
}

export function openSum(): Accumulation {
  return new Total();
}

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

function openExtreme(direction: 1 | -1): () => Accumulation {
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
function openDeviation(sample: boolean): () => Accumulation {
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

function openFirst(): Accumulation {
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

function openLast(): Accumulation {
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

function openPush(): Accumulation {
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

function openAddToSet(): Accumulation {
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

function openMergeObjects(): Accumulation {
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

type AccumulatorCompiler = (operand: unknown, compiler: Compiler, name: string) => Accumulator;

function simple(open: () => Accumulation): AccumulatorCompiler {
  return (operand, compiler, name) => {
    if (Array.isArray(operand) && operand.length !== 1) {
      throw refusal(40237, `The ${name} accumulator is a unary operator`);
    }
    const { evaluate } = compiler.compile(Array.isArray(operand) ? operand[0] : operand);
    return { evaluate, open };
  };
}

/** The number of values that the `N` accumulators keep: a constant positive integer. */
export function requireCount(compiled: Compiled, name: string): number {
  if (!compiled.constant) throw refusal(5787902, `${name}: 'n' must be a constant expression in this engine`);
  return checkCount(compiled.evaluate({}, NO_SCOPE), name);
}

export function checkCount(value: unknown, name: string): number {
  const count = integerOf(value);
  if (count === null) throw refusal(5787902, `${name}: 'n' must be an integral value`);
  if (count < 1) throw refusal(5787908, `${name}: 'n' must be greater than 0`);
  return count;
}

/** What accumulators of `count` values hold beyond that, so that they need not put each value into its place. */
const SPARE = 64;

/** Keeps `count` of the values in order: those that go first. */
function openBest<T>(count: number, order: (a: T, b: T) => number) {
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
    result(): readonly T[] {
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

const SEVERAL: Readonly<Record<string, (count: number) => Accumulation>> = {
  $firstN: openFirstN,
  $lastN: openLastN,
  $minN: (count) => openMinN(count, 1),
  $maxN: (count) => openMinN(count, -1),
};

const several: AccumulatorCompiler = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['input', 'n'], []);
  const count = requireCount(compiler.compile(fields['n']), name);
  return { evaluate: compiler.compile(fields['input']).evaluate, open: () => SEVERAL[name]!(count) };
};

interface Ranked {
  readonly keys: KeyTuple;
  readonly output: unknown;
}

/** `$top`, `$bottom` and their `N` forms: values ranked by keys of the documents they come from. */
const ranked: AccumulatorCompiler = (operand, compiler, name) => {
  const isSeveral = name.endsWith('N');
  const fields = namedOperand(operand, name, isSeveral ? ['n', 'sortBy', 'output'] : ['sortBy', 'output'], []);
  if (!isDocument(fields['sortBy'])) throw refusal(5788604, `${name}: 'sortBy' must be an object`);
  const sort = compileSort(fields['sortBy']);
  const output = compiler.compile(fields['output']);
  // The sort reads its fields from the document: say so to whoever collects what is read.
  for (const field of sort.fields) if (!field.startsWith('$')) compiler.compile(`$${field}`);
  const count = isSeveral ? requireCount(compiler.compile(fields['n']), name) : 1;
  const isBottom = name.startsWith('$bottom');
  // For the bottom the best are the last; reversing both order and result keeps equal ones in their order.
  const order = (a: Ranked, b: Ranked) => sort.compareKeys(a.keys, b.keys) * (isBottom ? -1 : 1);
  return {
    evaluate: (current, scope): Ranked => ({
      keys: sort.keysOf(isDocument(current) ? current : {}),
      output: output.evaluate(current, scope) ?? null,
    }),
    open() {
      const best = openBest(count, order);
      const outputs = (): unknown[] => {
        const values = best.result().map((item) => item.output);
        return isBottom ? values.reverse() : values;
      };
      return {
        add: (value) => best.add(value as Ranked),
        result: () => (isSeveral ? outputs() : (outputs()[0] ?? null)),
      };
    },
  };
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

/** The named operands that `$median` and `$percentile` share. */
export function percentileOperand(operand: unknown, compiler: Compiler, name: string) {
  const isMedian = name === '$median';
  const fields = namedOperand(operand, name, isMedian ? ['input', 'method'] : ['input', 'p', 'method'], []);
  if (fields['method'] !== 'approximate') throw refusal(2, `${name}: the method must be 'approximate'`);
  let fractions: unknown = [0.5];
  if (!isMedian) {
    const p = compiler.compile(fields['p']);
    fractions = p.constant ? p.evaluate({}, NO_SCOPE) : null;
  }
  const list = Array.isArray(fractions) ? fractions.map(numberOf) : [];
  if (list.length === 0 || list.some((p) => p === null || !(p >= 0 && p <= 1))) {
    throw refusal(7750301, `${name}: 'p' must be a non-empty array of constant numbers from 0 to 1`);
  }
  return { input: compiler.compile(fields['input']), fractions: list as number[], isMedian };
}

const percentile: AccumulatorCompiler = (operand, compiler, name) => {
  const { input, fractions, isMedian } = percentileOperand(operand, compiler, name);
  return {
    evaluate: input.evaluate,
    open() {
      const numbers: number[] = [];
      return {
        add(value) {
          const number = numberOf(value);
          if (number === null || Number.isNaN(number)) return 0;
          numbers.push(number);
          return 16;
        },
        result() {
          const values = percentilesOf(numbers, fractions);
          return isMedian ? values[0] : values;
        },
      };
    },
  };
};

/** The accumulators of `$group` and its relatives, by name. */
export const ACCUMULATORS: Readonly<Record<string, AccumulatorCompiler>> = {
  $sum: simple(openSum),
  $avg: simple(openAverage),
  $min: simple(openExtreme(-1)),
  $max: simple(openExtreme(1)),
  $first: simple(openFirst),
  $last: simple(openLast),
  $push: simple(openPush),
  $addToSet: simple(openAddToSet),
  $mergeObjects: simple(openMergeObjects),
  $stdDevPop: simple(openDeviation(false)),
  $stdDevSamp: simple(openDeviation(true)),
  $count(operand, _compiler, name) {
    if (!isDocument(operand) || Object.keys(operand).length > 0)
      throw refusal(14, `${name} takes no arguments, i.e. $count:{}`);
    return { evaluate: () => 1, open: openSum };
  },
  $firstN: several,
  $lastN: several,
  $minN: several,
  $maxN: several,
  $top: ranked,
  $topN: ranked,
  $bottom: ranked,
  $bottomN: ranked,
  $median: percentile,
  $percentile: percentile,
};

export const supportedAccumulators: readonly string[] = Object.keys(ACCUMULATORS).sort();

/** Compiles `{$sum: ...}` and its like; an unknown name is refused with 15952, as in a `$group`. */
export function compileAccumulator(spec: unknown, field: string, compiler: Compiler): Accumulator {
  if (!isDocument(spec)) throw refusal(40234, `The field '${field}' must be an accumulator object`);
  const names = Object.keys(spec);
  if (names.length !== 1) throw refusal(40238, `The field '${field}' must specify one accumulator`);
  const name = names[0]!;
  const compile = Object.hasOwn(ACCUMULATORS, name) ? ACCUMULATORS[name] : undefined;
  if (compile !== undefined) return compile(spec[name], compiler, name);
  if (name === '$accumulator') throw refusal(115, '$accumulator is not supported by this engine');
  throw refusal(15952, `unknown group operator '${name}'`);
}

/** An accumulator over the items of one list, as the expression operators of the same names have it. */
export function accumulateAll(open: () => Accumulation, values: Iterable<unknown>): unknown {
  const accumulation = open();
  for (const value of values) accumulation.add(value);
  return accumulation.result();
}

export const EXTREMES = { $min: openExtreme(-1), $max: openExtreme(1) } as const;
export const DEVIATIONS = { $stdDevPop: openDeviation(false), $stdDevSamp: openDeviation(true) } as const;
