import { refusal } from '../../errors.js';
import { closeDecimal, decimalOf, divideDecimals } from '../decimal.js';
import { compileSort, type KeyTuple } from '../sort.js';
import { compareValues } from '../compare.js';
import { type Doc, integerOf, isDocument, isNullish, numberOf, setField, toDouble, typeOf } from '../value.js';
import { keyOf } from '../value-key.js';
import { type Compiled, type Compiler, type Evaluate, namedOperand, NO_SCOPE } from './operator.js';
import { Total } from './total.js';

/** What an accumulator has seen of one group. */
export interface Accumulation {
  add(value: unknown): void;
  result(): unknown;
}

/** A compiled accumulator: `evaluate` computes what is added for each document. */
export interface Accumulator {
  readonly evaluate: Evaluate;
  open(): Accumulation;
  /** Whether its memory grows with the number of documents. */
  readonly grows: boolean;
}

export function openSum(): Accumulation {
  return new Total();
}

export function openAverage(): Accumulation {
  const total = new Total();
  return {
    add: (value) => {
      total.add(value);
    },
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
        if (!isNullish(value) && (best === null || compareValues(value, best) * direction > 0)) best = value;
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
        if (number === null) return;
        count++;
        const delta = number - mean;
        mean += delta / count;
        squaredDeltas += delta * (number - mean);
        sum += number;
        squares += number * number;
        isExact &&=
          Number.isInteger(number) && Number.isSafeInteger(squares * count) && Number.isSafeInteger(sum * sum);
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
      if (seen) return;
      seen = true;
      value = next;
    },
    result: () => value ?? null,
  };
}

function openLast(): Accumulation {
  let value: unknown;
  return { add: (next) => (value = next), result: () => value ?? null };
}

function openPush(): Accumulation {
  const values: unknown[] = [];
  return {
    add(value) {
      if (value !== undefined) values.push(value);
    },
    result: () => values,
  };
}

function openAddToSet(): Accumulation {
  const values = new Map<unknown, unknown>();
  return {
    add(value) {
      if (value === undefined) return;
      const key = keyOf(value);
      if (!values.has(key)) values.set(key, value);
    },
    result: () => [...values.values()],
  };
}

function openMergeObjects(): Accumulation {
  const merged: Doc = {};
  return {
    add(value) {
      if (isNullish(value)) return;
      if (!isDocument(value))
        throw refusal(40400, `$mergeObjects requires object inputs, but input is of type ${typeOf(value)}`);
      for (const name of Object.keys(value)) setField(merged, name, value[name]);
    },
    result: () => merged,
  };
}

type AccumulatorCompiler = (operand: unknown, compiler: Compiler, name: string) => Accumulator;

function simple(open: () => Accumulation, grows = false): AccumulatorCompiler {
  return (operand, compiler, name) => {
    if (Array.isArray(operand) && operand.length !== 1) {
      throw refusal(40237, `The ${name} accumulator is a unary operator`);
    }
    const { evaluate } = compiler.compile(Array.isArray(operand) ? operand[0] : operand);
    return { evaluate, open, grows };
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

/** Keeps `count` of the values in order; `least` says which of two goes first. */
function openBest(count: number, order: (a: unknown, b: unknown) => number): Accumulation & { values: unknown[] } {
  const values: unknown[] = [];
  return {
    values,
    add(value) {
      if (values.length === count && order(value, values[count - 1]) >= 0) return;
      let at = values.length;
      while (at > 0 && order(value, values[at - 1]) < 0) at--;
      values.splice(at, 0, value);
      if (values.length > count) values.pop();
    },
    result: () => values,
  };
}

/** The accumulation behind `$firstN`, `$lastN`, `$minN` and `$maxN`. */
export function openSeveral(name: string, count: number): Accumulation {
  if (name === '$minN' || name === '$maxN') {
    const best = openBest(count, name === '$minN' ? compareValues : (a, b) => compareValues(b, a));
    return {
      add(value) {
        if (!isNullish(value)) best.add(value);
      },
      result: best.result,
    };
  }
  const values: unknown[] = [];
  return {
    add(value) {
      if (name === '$firstN' && values.length === count) return;
      values.push(value ?? null);
      if (values.length > count) values.shift();
    },
    result: () => values,
  };
}

const several: AccumulatorCompiler = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['input', 'n'], []);
  const count = requireCount(compiler.compile(fields['n']), name);
  return { evaluate: compiler.compile(fields['input']).evaluate, open: () => openSeveral(name, count), grows: true };
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
  const order = (a: unknown, b: unknown) =>
    sort.compareKeys((a as Ranked).keys, (b as Ranked).keys) * (isBottom ? -1 : 1);
  return {
    evaluate: (current, scope): Ranked => ({
      keys: sort.keysOf(isDocument(current) ? current : {}),
      output: output.evaluate(current, scope) ?? null,
    }),
    open() {
      const best = openBest(count, order);
      const outputs = (): unknown[] => {
        const values = best.values.map((item) => (item as Ranked).output);
        return isBottom ? values.reverse() : values;
      };
      return { add: best.add, result: () => (isSeveral ? outputs() : (outputs()[0] ?? null)) };
    },
    grows: true,
  };
};

/** The values at the given fractions: of the sorted numbers the one at which the fraction is reached. */
export function percentilesOf(numbers: readonly number[], fractions: readonly number[]): unknown[] {
  const sorted = [...numbers].sort((a, b) => a - b);
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
          if (number !== null && !Number.isNaN(number)) numbers.push(number);
        },
        result() {
          const values = percentilesOf(numbers, fractions);
          return isMedian ? values[0] : values;
        },
      };
    },
    grows: true,
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
  $push: simple(openPush, true),
  $addToSet: simple(openAddToSet, true),
  $mergeObjects: simple(openMergeObjects, true),
  $stdDevPop: simple(openDeviation(false)),
  $stdDevSamp: simple(openDeviation(true)),
  $count(operand, _compiler, name) {
    if (!isDocument(operand) || Object.keys(operand).length > 0)
      throw refusal(14, `${name} takes no arguments, i.e. $count:{}`);
    return { evaluate: () => 1, open: openSum, grows: false };
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
