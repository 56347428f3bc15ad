import { refusal } from '../../errors.js';
import { isNullish, numberOf, typeOf } from '../value.js';
import {
  accumulateAll,
  type Accumulation,
  checkCount,
  DEVIATIONS,
  EXTREMES,
  openAverage,
  openSeveral,
  openSum,
  percentileOperand,
  percentilesOf,
} from './accumulators.js';
import { compileArguments, type ExpressionOperator, fold, named, type OperatorTable } from './operator.js';

/** One argument that is an array stands for its items; several arguments stand for themselves. */
function over(open: () => Accumulation): ExpressionOperator {
  return (operand, compiler, name) => {
    const parts = compileArguments(operand, compiler, name, 0, Infinity);
    const evaluates = parts.map((part) => part.evaluate);
    return fold((current, scope) => {
      const values = evaluates.map((evaluate) => evaluate(current, scope));
      const [only] = values;
      return accumulateAll(open, values.length === 1 && Array.isArray(only) ? only : values);
    }, parts);
  };
}

function several(name: string): ExpressionOperator {
  return named(['n', 'input'], [], ({ n, input }) => {
    const count = checkCount(n, name);
    if (isNullish(input)) return null;
    if (!Array.isArray(input)) throw refusal(5788200, `${name}: the input must be an array, found ${typeOf(input)}`);
    return accumulateAll(() => openSeveral(name, count), input);
  });
}

const percentile: ExpressionOperator = (operand, compiler, name) => {
  const { input, fractions, isMedian } = percentileOperand(operand, compiler, name);
  return fold(
    (current, scope) => {
      const value = input.evaluate(current, scope);
      const numbers = (Array.isArray(value) ? value : [value])
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
  $min: over(EXTREMES.$min),
  $max: over(EXTREMES.$max),
  $stdDevPop: over(DEVIATIONS.$stdDevPop),
  $stdDevSamp: over(DEVIATIONS.$stdDevSamp),
  $firstN: several('$firstN'),
  $lastN: several('$lastN'),
  $minN: several('$minN'),
  $maxN: several('$maxN'),
  $median: percentile,
  $percentile: percentile,
};
