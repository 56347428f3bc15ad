import { isDocument } from '../../codec/document.js';
import { badValue, refusal, typeMismatch, unsupported } from '../../errors.js';
import { compileSort, type KeyTuple } from '../sort.js';
import { integerOf, numberOf } from '../values/value.js';
import {
  type Accumulation,
  openAddToSet,
  openAverage,
  openBest,
  openDeviation,
  openExtreme,
  openFirst,
  openLast,
  openMergeObjects,
  openPush,
  openSum,
  percentilesOf,
  SEVERAL,
} from './accumulations.js';
import { type Compiled, type Compiler, type Evaluate, namedOperand, NO_SCOPE } from './operator.js';

/** A compiled accumulator: `evaluate` computes what is added for each document. */
export interface Accumulator {
  readonly evaluate: Evaluate;
  open(): Accumulation;
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
function requireCount(compiled: Compiled, name: string): number {
  if (!compiled.constant) throw refusal(5787902, `${name}: 'n' must be a constant expression in this engine`);
  return checkCount(compiled.evaluate({}, NO_SCOPE), name);
}

/** The `n` of an accumulator; 5787902 unless it is integral, 5787908 below 1. */
export function checkCount(value: unknown, name: string): number {
  const count = integerOf(value);
  if (count === null) throw refusal(5787902, `${name}: 'n' must be an integral value`);
  if (count < 1) throw refusal(5787908, `${name}: 'n' must be greater than 0`);
  return count;
}

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
  // The sort reads its fields from the document: say so to the code that collects what is read.
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

/** The named operands that `$median` and `$percentile` share. */
export function percentileOperand(operand: unknown, compiler: Compiler, name: string) {
  const isMedian = name === '$median';
  const fields = namedOperand(operand, name, isMedian ? ['input', 'method'] : ['input', 'p', 'method'], []);
  if (fields['method'] !== 'approximate') throw badValue(`${name}: the method must be 'approximate'`);
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
    if (!isDocument(operand) || Object.keys(operand).length > 0) {
      throw typeMismatch(`${name} takes no arguments, i.e. $count:{}`);
    }
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
  if (name === '$accumulator') throw unsupported('$accumulator is not supported by this engine');
  throw refusal(15952, `unknown group operator '${name}'`);
}
