import { isDocument } from '../../codec/document.js';
import { failedToParse, refusal } from '../../errors.js';
import { addNumbers, kindOf, multiplyNumbers, subtractNumbers } from '../../query/values/number.js';
import { ACCUMULATORS, type Accumulator } from '../../query/operators/accumulators.js';
import { type Compiler, type Evaluate, NO_SCOPE } from '../../query/operators/operator.js';
import type { Sort } from '../../query/sort.js';
import { integerOf, isNullish, isNumber, numberOf, toDouble } from '../../query/values/value.js';
import type { Partition } from './partition.js';
import type { Keyed } from './sort.js';

/** The values of each input for all documents of a partition. */
type Columns = readonly (readonly unknown[])[];

/** A window function: an accumulator over each document's window, or a computation over the whole partition. */
export type WindowFunction = {
  /** Expressions evaluated for each document before anything is computed. */
  readonly inputs: readonly Evaluate[];
} & (
  | { readonly kind: 'accumulate'; readonly accumulator: Accumulator }
  | { readonly kind: 'partition'; compute(part: Partition, columns: Columns): unknown[] }
  | { readonly kind: 'window'; compute(part: Partition, columns: Columns, from: number, to: number): unknown }
);

/** Tools for compiling a window function. */
export interface WindowTools {
  readonly compiler: Compiler;
  readonly sort: Sort | null;
  readonly name: string;
}

type WindowCompiler = (operand: unknown, tools: WindowTools) => WindowFunction;

function requireSortBy({ sort, name }: WindowTools, single = false): Sort {
  if (sort === null) throw refusal(5371602, `${name} must be specified with a top level sortBy expression`);
  if (single && sort.parts.length !== 1) {
    throw refusal(5371602, `${name} must be specified with a top level sortBy expression with exactly one element`);
  }
  return sort;
}

function requireEmpty(operand: unknown, name: string): void {
  if (!isDocument(operand) || Object.keys(operand).length > 0) {
    throw refusal(5371603, `(None) ${name} must be specified with '{}' as the value`);
  }
}

function rank(step: (isTie: boolean, previous: number, index: number) => number): WindowCompiler {
  return (operand, tools) => {
    requireEmpty(operand, tools.name);
    const sort = requireSortBy(tools, tools.name !== '$documentNumber');
    return {
      kind: 'partition',
      inputs: [],
      compute(part) {
        let current = 0;
        return part.map(({ keys }, i) => {
          const isTie = i > 0 && sort.compareKeys(part[i - 1]!.keys, keys) === 0;
          current = step(isTie, current, i);
          return current;
        });
      },
    };
  };
}

const shift: WindowCompiler = (operand, { compiler, ...tools }) => {
  requireSortBy({ compiler, ...tools });
  if (!isDocument(operand)) throw failedToParse('Argument to $shift must be an object');
  for (const name of Object.keys(operand)) {
    if (!['output', 'by', 'default'].includes(name)) throw failedToParse(`Unknown argument in $shift: ${name}`);
  }
  const by = integerOf(operand['by']);
  if (by === null || !Object.hasOwn(operand, 'output')) {
    throw failedToParse("$shift requires 'output' and an integer 'by'");
  }
  const output = compiler.compile(operand['output']).evaluate;
  const fallback = compiler.compile(Object.hasOwn(operand, 'default') ? operand['default'] : null);
  if (!fallback.constant) throw failedToParse("'$shift:default' must be a constant expression");
  const missing = fallback.evaluate({}, NO_SCOPE);
  return {
    kind: 'partition',
    inputs: [output],
    compute: (part, [values]) =>
      part.map((_item, i) => (i + by >= 0 && i + by < part.length ? (values![i + by] ?? null) : missing)),
  };
};

const expMovingAvg: WindowCompiler = (operand, tools) => {
  requireSortBy(tools);
  if (!isDocument(operand) || !Object.hasOwn(operand, 'input')) {
    throw failedToParse("$expMovingAvg requires 'input' and 'N' or 'alpha'");
  }
  const count = Object.hasOwn(operand, 'N') ? integerOf(operand['N']) : null;
  const alpha = count === null ? numberOf(operand['alpha']) : 2 / (count + 1);
  if (alpha === null || !(alpha > 0 && alpha <= 1) || (count !== null && count < 1)) {
    throw failedToParse("$expMovingAvg requires either a positive integer 'N' or an 'alpha' between 0 and 1");
  }
  const input = tools.compiler.compile(operand['input']).evaluate;
  return {
    kind: 'partition',
    inputs: [input],
    compute(_part, [values]) {
      let average: number | null = null;
      return values!.map((value) => {
        const number = numberOf(value);
        if (number !== null) average = average === null ? number : number * alpha + average * (1 - alpha);
        return average === null ? null : toDouble(average);
      });
    },
  };
};

const UNIT_MS: Readonly<Record<string, number>> = {
  week: 604_800_000,
  day: 86_400_000,
  hour: 3_600_000,
  minute: 60_000,
  second: 1000,
  millisecond: 1,
};

/** The operand of `$derivative` and `$integral`: `{input, unit}`. */
function rateOperand(operand: unknown, tools: WindowTools) {
  requireSortBy(tools, true);
  if (!isDocument(operand) || !Object.hasOwn(operand, 'input')) {
    throw failedToParse(`${tools.name} requires an 'input'`);
  }
  const unit = operand['unit'];
  const unitMs = unit === undefined ? null : typeof unit === 'string' ? (UNIT_MS[unit] ?? null) : null;
  if (unit !== undefined && unitMs === null) throw refusal(5490710, `unit must be 'week' or smaller in ${tools.name}`);
  const input = tools.compiler.compile(operand['input']).evaluate;
  const position = ({ keys: [key] }: Keyed): number | null => {
    if (key instanceof Date) {
      if (unitMs === null) throw refusal(5624901, `${tools.name} where the sortBy is a Date requires a 'unit'`);
      return key.getTime() / unitMs;
    }
    if (unitMs !== null && !isNullish(key)) {
      throw refusal(5624900, `${tools.name} with a 'unit' expects the sortBy field to be a Date`);
    }
    return numberOf(key);
  };
  return { input, position };
}

const derivative: WindowCompiler = (operand, tools) => {
  const { input, position } = rateOperand(operand, tools);
  return {
    kind: 'window',
    inputs: [input],
    compute(part, [values], from, to) {
      if (to <= from) return null;
      const [x0, x1] = [position(part[from]!), position(part[to]!)];
      const [y0, y1] = [numberOf(values![from]), numberOf(values![to])];
      if (x0 === null || x1 === null || y0 === null || y1 === null || x1 === x0) return null;
      return toDouble((y1 - y0) / (x1 - x0));
    },
  };
};

const integral: WindowCompiler = (operand, tools) => {
  const { input, position } = rateOperand(operand, tools);
  return {
    kind: 'window',
    inputs: [input],
    compute(part, [values], from, to) {
      let area = 0;
      let previous: { x: number; y: number } | null = null;
      for (let i = from; i <= to; i++) {
        const x = position(part[i]!);
        const y = numberOf(values![i]);
        if (x === null || y === null) continue;
        if (previous !== null) area += ((x - previous.x) * (y + previous.y)) / 2;
        previous = { x, y };
      }
      return previous === null ? null : toDouble(area);
    },
  };
};

function covariance(isSample: boolean): WindowCompiler {
  return (operand, { compiler, name }) => {
    if (!Array.isArray(operand) || operand.length !== 2) {
      throw failedToParse(`${name} takes an array of two expressions`);
    }
    return {
      kind: 'window',
      inputs: operand.map((item) => compiler.compile(item).evaluate),
      compute(_part, [first, second], from, to) {
        let count = 0;
        let meanX = 0;
        let meanY = 0;
        let sum = 0;
        for (let i = from; i <= to; i++) {
          const x = numberOf(first![i]);
          const y = numberOf(second![i]);
          if (x === null || y === null) continue;
          count++;
          const delta = x - meanX;
          meanX += delta / count;
          meanY += (y - meanY) / count;
          sum += delta * (y - meanY);
        }
        const divisor = isSample ? count - 1 : count;
        return divisor < 1 ? null : toDouble(sum / divisor);
      },
    };
  };
}

/** Repeats the last value for null and missing ones. */
export function carryForward(values: readonly unknown[]): unknown[] {
  let last: unknown = null;
  return values.map((value) => {
    if (!isNullish(value)) last = value;
    return last;
  });
}

/** Fills null and missing values on the line between their neighbours; the ends stay null. */
export function interpolate(values: readonly unknown[], positions: readonly unknown[]): unknown[] {
  const result: unknown[] = values.map((value) => value ?? null);
  let previous = -1;
  for (let i = 0; i < values.length; i++) {
    if (isNullish(values[i])) continue;
    if (!isNumber(values[i])) throw refusal(605001, '$linearFill expects numeric values');
    for (let k = previous + 1; previous >= 0 && k < i; k++) {
      result[k] = between(values[previous], values[i], positions[previous], positions[i], positions[k]);
    }
    previous = i;
  }
  return result;
}

function between(y0: unknown, y1: unknown, x0: unknown, x1: unknown, x: unknown): unknown {
  const [start, end, at] = [coordinate(x0), coordinate(x1), coordinate(x)];
  if (end === start) throw refusal(605002, 'There can be no repeated values in the sort field of $linearFill');
  const fraction = toDouble((at - start) / (end - start));
  const filled = addNumbers(y0, multiplyNumbers(subtractNumbers(y1, y0), fraction));
  return kindOf(filled) === 'double' ? toDouble(numberOf(filled)!) : filled;
}

function coordinate(value: unknown): number {
  const number = value instanceof Date ? value.getTime() : numberOf(value);
  if (number === null) throw refusal(605003, '$linearFill expects the sort field to be a number or a date');
  return number;
}

/** The functions of `$setWindowFields` that are no accumulators. */
const WINDOW_FUNCTIONS: Readonly<Record<string, WindowCompiler>> = {
  $rank: rank((isTie, previous, index) => (isTie ? previous : index + 1)),
  $denseRank: rank((isTie, previous) => (isTie ? previous : previous + 1)),
  $documentNumber: rank((_isTie, _previous, index) => index + 1),
  $shift: shift,
  $expMovingAvg: expMovingAvg,
  $derivative: derivative,
  $integral: integral,
  $covariancePop: covariance(false),
  $covarianceSamp: covariance(true),
  $locf(operand, tools) {
    requireSortBy(tools);
    const input = tools.compiler.compile(operand).evaluate;
    return { kind: 'partition', inputs: [input], compute: (_part, [values]) => carryForward(values!) };
  },
  $linearFill(operand, tools) {
    requireSortBy(tools, true);
    return {
      kind: 'partition',
      inputs: [tools.compiler.compile(operand).evaluate],
      compute: (part, [values]) =>
        interpolate(
          values!,
          part.map(({ keys }) => keys[0]),
        ),
    };
  },
};

/** `$mergeObjects` is the one accumulator that has no windowed form. */
const NOT_WINDOWED = new Set(['$mergeObjects']);

/** Every function of `$setWindowFields`. */
export const supportedWindowFunctions: readonly string[] = [
  ...Object.keys(WINDOW_FUNCTIONS),
  ...Object.keys(ACCUMULATORS).filter((name) => !NOT_WINDOWED.has(name)),
].sort();

/** Compiles one output's function; an unknown name is refused (9). */
export function compileWindowFunction(operand: unknown, tools: WindowTools): WindowFunction {
  const { name, compiler } = tools;
  if (Object.hasOwn(WINDOW_FUNCTIONS, name)) return WINDOW_FUNCTIONS[name]!(operand, tools);
  if (Object.hasOwn(ACCUMULATORS, name) && !NOT_WINDOWED.has(name)) {
    const accumulator = ACCUMULATORS[name]!(operand, compiler, name);
    return { kind: 'accumulate', inputs: [accumulator.evaluate], accumulator };
  }
  throw failedToParse(`Unrecognized window function, ${name}`);
}
