import { refusal } from '../../errors.js';
import { compareValues } from '../values/compare.js';
import { isNullish, numberOf, typeOf } from '../values/value.js';
import {
  accumulateAll,
  type Accumulation,
  openAverage,
  openDeviation,
  openExtreme,
  openSum,
  percentilesOf,
} from './accumulations.js';
import { checkCount, percentileOperand } from './accumulators.js';
import {
  compileArguments,
  countRounds,
  type ExpressionOperator,
  fold,
  named,
  type OperatorTable,
  type Scope,
} from './operator.js';

/** One argument that is an array stands for its items; several arguments stand for themselves. */
function over(open: () => Accumulation): ExpressionOperator {
  return (operand, compiler, name) => {
    const parts = compileArguments(operand, compiler, name, 0, Infinity);
    const evaluates = parts.map((part) => part.evaluate);
    return fold((current, scope) => {
      const values = evaluates.map((evaluate) => evaluate(current, scope));
      const [only] = values;
      const items = values.length === 1 && Array.isArray(only) ? (only as unknown[]) : values;
      countRounds(scope, items.length);
      return accumulateAll(open, items);
    }, parts);
  };
}

function several(
  name: string,
  pick: (items: readonly unknown[], count: number, scope: Scope) => unknown[],
): ExpressionOperator {
  return named(['n', 'input'], [], ({ n, input }, _given, scope) => {
    const count = checkCount(n, name);
    if (isNullish(input)) return null;
    if (!Array.isArray(input)) throw refusal(5788200, `${name}: the input must be an array, found ${typeOf(input)}`);
    countRounds(scope, input.length);
    return pick(input, count, scope);
  });
}

function extremes(direction: 1 | -1) {
  return (items: readonly unknown[], count: number, scope: Scope): unknown[] =>
    items
      .filter((item) => !isNullish(item))
      .sort((a, b) => {
        countRounds(scope);
        return compareValues(a, b) * direction;
      })
      .slice(0, count);
}

const percentile: ExpressionOperator = (operand, compiler, name) => {
  const { input, fractions, isMedian } = percentileOperand(operand, compiler, name);
  return fold(
    (current, scope) => {
      const value = input.evaluate(current, scope);
      const items: unknown[] = Array.isArray(value) ? value : [value];
      countRounds(scope, items.length);
      const numbers = items
        .map(numberOf)
        .filter((number): number is number => number !== null && !Number.isNaN(number));
      const values = percentilesOf(numbers, fractions);
      return isMedian ? values[0] : values;
    },
    [input],
  );
};

/** The accumulators that are expressions as well. */
export const accumulatorExpressions: OperatorTable = {
  $sum: over(openSum),
  $avg: over(openAverage),
  $min: over(openExtreme(-1)),
  $max: over(openExtreme(1)),
  $stdDevPop: over(openDeviation(false)),
  $stdDevSamp: over(openDeviation(true)),
  $firstN: several('$firstN', (items, count) => items.slice(0, count)),
  $lastN: several('$lastN', (items, count) => items.slice(-count)),
  $minN: several('$minN', extremes(1)),
  $maxN: several('$maxN', extremes(-1)),
  $median: percentile,
  $percentile: percentile,
};
