import { isDocument } from '../../codec/document.js';
import { CODES, EngineError, refusal } from '../../errors.js';
import { compileSort } from '../sort.js';
import { compareValues, equalValues } from '../values/compare.js';
import { integerOf, isNullish, isTruthy, typeOf } from '../values/value.js';
import { keyOf } from '../values/value-key.js';
import { addWeight, MAX_ITEMS, weigh } from '../values/weight.js';
import {
  binary,
  type Compiled,
  type Compiler,
  countRounds,
  type ExpressionOperator,
  fold,
  namedOperand,
  NO_SCOPE,
  type OperatorTable,
  type Scope,
  unary,
  variadic,
} from './operator.js';

function tooLarge(name: string): EngineError {
  return new EngineError(CODES.ExceededMemoryLimit, `${name} would use too much memory and cannot spill`);
}

function requireArray(value: unknown, message: string, code: number): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw refusal(code, `${message}, found: ${typeOf(value)}`);
}

function requireInteger(value: unknown, message: string, code: number): number {
  const number = integerOf(value);
  if (number === null) throw refusal(code, `${message}, found: ${typeOf(value)}`);
  return number;
}

function elementAt(value: unknown, index: unknown): unknown {
  if (isNullish(value) || isNullish(index)) return null;
  const array = requireArray(value, "$arrayElemAt's first argument must be an array", 28689);
  return array.at(requireInteger(index, "$arrayElemAt's second argument must be an integer", 28691));
}

/** One end of an array; null for null and missing, missing for an empty one. */
function end(name: string, index: number): ExpressionOperator {
  return unary((value) => {
    if (isNullish(value)) return null;
    return requireArray(value, `${name}'s argument must be an array`, 28689).at(index);
  });
}

function bindOne(compiler: Compiler, name: unknown, operator: string): { compiler: Compiler; slot: number } {
  if (typeof name !== 'string') throw refusal(16866, `${operator}: 'as' must be a string`);
  const { compiler: inner, slots } = compiler.bind([name]);
  return { compiler: inner, slot: slots[0]! };
}

const map: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['input', 'in'], ['as']);
  const input = compiler.compile(fields['input']);
  const { compiler: inner, slot } = bindOne(compiler, Object.hasOwn(fields, 'as') ? fields['as'] : 'this', name);
  const body = inner.compile(fields['in']);
  return {
    evaluate(current, scope) {
      const array = input.evaluate(current, scope);
      if (isNullish(array)) return null;
      let weight = 0;
      return requireArray(array, 'input to $map must be an array', 16883).map((item) => {
        countRounds(scope);
        scope.vars[slot] = item;
        const value = body.evaluate(current, scope) ?? null;
        weight = addWeight(weight, value);
        return value;
      });
    },
    constant: false,
  };
};

const filter: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['input', 'cond'], ['as', 'limit']);
  const input = compiler.compile(fields['input']);
  const most = Object.hasOwn(fields, 'limit') ? compiler.compile(fields['limit']) : undefined;
  const { compiler: inner, slot } = bindOne(compiler, Object.hasOwn(fields, 'as') ? fields['as'] : 'this', name);
  const condition = inner.compile(fields['cond']);
  return {
    evaluate(current, scope) {
      const array = input.evaluate(current, scope);
      if (isNullish(array)) return null;
      let left = filterLimit(most?.evaluate(current, scope));
      const kept: unknown[] = [];
      for (const item of requireArray(array, 'input to $filter must be an array', 28651)) {
        if (left === 0) break;
        countRounds(scope);
        scope.vars[slot] = item;
        if (!isTruthy(condition.evaluate(current, scope))) continue;
        kept.push(item);
        left--;
      }
      return kept;
    },
    constant: false,
  };
};

function filterLimit(value: unknown): number {
  if (isNullish(value)) return Infinity;
  const limit = requireInteger(value, '$filter: limit must be represented as a 32-bit integral value', 327391);
  if (limit < 1) throw refusal(327392, '$filter: limit must be greater than 0');
  return limit;
}

const reduce: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['input', 'initialValue', 'in'], []);
  const input = compiler.compile(fields['input']);
  const initial = compiler.compile(fields['initialValue']);
  const { compiler: inner, slots } = compiler.bind(['value', 'this']);
  const body = inner.compile(fields['in']);
  const [valueSlot, thisSlot] = slots as [number, number];
  return {
    evaluate(current, scope) {
      const array = input.evaluate(current, scope);
      if (isNullish(array)) return null;
      let value = initial.evaluate(current, scope);
      for (const item of requireArray(array, '$reduce requires that `input` be an array', 40080)) {
        countRounds(scope);
        scope.vars[valueSlot] = value;
        scope.vars[thisSlot] = item;
        value = body.evaluate(current, scope);
      }
      return value;
    },
    constant: false,
  };
};

function range(values: readonly unknown[], scope: Scope): unknown[] {
  const start = requireInteger(values[0], '$range requires a numeric starting value', 34443);
  const stop = requireInteger(values[1], '$range requires a numeric ending value', 34445);
  const step = values.length < 3 ? 1 : requireInteger(values[2], '$range requires a numeric step value', 34447);
  if (step === 0) throw refusal(34449, '$range requires a non-zero step value');
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > MAX_ITEMS) throw tooLarge('$range');
  countRounds(scope, length);
  const result: number[] = [];
  if (step > 0) for (let i = start; i < stop; i += step) result.push(i);
  else for (let i = start; i > stop; i += step) result.push(i);
  return result;
}

function slice(values: readonly unknown[], scope: Scope): unknown {
  if (values.some(isNullish)) return null;
  const part = sliceOf(values);
  countRounds(scope, part.length);
  return part;
}

function sliceOf(values: readonly unknown[]): readonly unknown[] {
  const array = requireArray(values[0], 'First argument to $slice must be an array', 28724);
  const first = requireInteger(values[1], 'Second argument to $slice must be an integer', 28726);
  if (values.length === 2) return first < 0 ? array.slice(first) : array.slice(0, first);
  const count = requireInteger(values[2], 'Third argument to $slice must be an integer', 28727);
  if (count <= 0) throw refusal(28729, 'Third argument to $slice must be positive');
  const from = first < 0 ? Math.max(0, array.length + first) : first;
  return array.slice(from, from + count);
}

function indexOfArray([value, wanted, from, to]: readonly unknown[], scope: Scope): unknown {
  if (isNullish(value)) return null;
  const array = requireArray(value, '$indexOfArray requires an array as a first argument', 40090);
  const bound = (index: unknown, fallback: number): number => {
    if (index === undefined) return fallback;
    const number = requireInteger(index, '$indexOfArray requires an integral index', 40096);
    if (number < 0) throw refusal(40097, '$indexOfArray requires a nonnegative index');
    return number;
  };
  const stop = Math.min(bound(to, array.length), array.length);
  for (let i = bound(from, 0); i < stop; i++) {
    countRounds(scope);
    if (equalValues(array[i], wanted)) return i;
  }
  return -1;
}

const zip: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['inputs'], ['useLongestLength', 'defaults']);
  const list = (value: unknown, code: number): Compiled[] => {
    if (!Array.isArray(value)) throw refusal(code, '$zip needs arrays of expressions');
    return value.map((item) => compiler.compile(item));
  };
  const inputs = list(fields['inputs'], 34461);
  if (inputs.length === 0) throw refusal(34465, '$zip requires at least one input array');
  const longest = Object.hasOwn(fields, 'useLongestLength') ? fields['useLongestLength'] : false;
  if (typeof longest !== 'boolean') throw refusal(34463, 'useLongestLength must be a bool');
  const defaults = Object.hasOwn(fields, 'defaults') ? list(fields['defaults'], 34462) : [];
  if (defaults.length > 0 && !longest) throw refusal(34466, 'cannot specify defaults unless useLongestLength is true');
  if (defaults.length > 0 && defaults.length !== inputs.length) {
    throw refusal(34467, 'defaults and inputs must have the same length');
  }
  return fold(
    (current, scope) => {
      const arrays = inputs.map((input) => input.evaluate(current, scope));
      if (arrays.some(isNullish)) return null;
      const known = arrays.map((array) => requireArray(array, '$zip found a non-array expression in input', 34468));
      const lengths = known.map((array) => array.length);
      const length = longest ? Math.max(...lengths) : Math.min(...lengths);
      if (length * known.length > MAX_ITEMS) throw tooLarge(name);
      countRounds(scope, length * known.length);
      const fill = defaults.map((value) => value.evaluate(current, scope));
      const rows = Array.from({ length }, (_, row) =>
        known.map((array, column) => (row < array.length ? array[row] : (fill[column] ?? null))),
      );
      weigh(rows);
      return rows;
    },
    [...inputs, ...defaults],
  );
};

const sortArray: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['input', 'sortBy'], []);
  const input = compiler.compile(fields['input']);
  const order = elementOrder(fields['sortBy']);
  return fold(
    (current, scope) => {
      const array = input.evaluate(current, scope);
      if (isNullish(array)) return null;
      const items = requireArray(array, 'The input argument to $sortArray must be an array', 2942504);
      return [...items].sort((a, b) => {
        countRounds(scope);
        return order(a, b);
      });
    },
    [input],
  );
};

function elementOrder(spec: unknown): (a: unknown, b: unknown) => number {
  if (isDocument(spec)) {
    const sort = compileSort(spec);
    return (a, b) => sort.compare(isDocument(a) ? a : {}, isDocument(b) ? b : {});
  }
  const direction = integerOf(spec);
  if (direction !== 1 && direction !== -1) {
    throw refusal(2942507, '$sortArray sortBy must be 1, -1 or a document');
  }
  return (a, b) => compareValues(a, b) * direction;
}

/** A constant list becomes a set once. */
const membership: ExpressionOperator = (operand, compiler, name) => {
  if (Array.isArray(operand) && operand.length === 2) {
    const list = compiler.compile(operand[1]);
    const items = list.constant ? list.evaluate({}, NO_SCOPE) : undefined;
    if (Array.isArray(items) && items.length > 4) {
      const keys = new Set(items.map(keyOf));
      const value = compiler.compile(operand[0]);
      return fold((current, scope) => keys.has(keyOf(value.evaluate(current, scope))), [value]);
    }
  }
  return anywhere(operand, compiler, name);
};

const anywhere = binary((value, array, scope) =>
  requireArray(array, '$in requires an array as a second argument', 40081).some((item) => {
    countRounds(scope);
    return equalValues(item, value);
  }),
);

/** Arrays. */
export const arrayOperators: OperatorTable = {
  $arrayElemAt: binary(elementAt),
  $first: end('$first', 0),
  $last: end('$last', -1),
  $concatArrays: variadic((values, scope) => {
    if (values.some(isNullish)) return null;
    const arrays = values.map((value) => requireArray(value, '$concatArrays only supports arrays', 28664));
    const length = arrays.reduce((sum, array) => sum + array.length, 0);
    if (length > MAX_ITEMS) throw tooLarge('$concatArrays');
    countRounds(scope, length);
    // Much faster than `flat`.
    const joined = ([] as unknown[]).concat(...arrays);
    weigh(joined);
    return joined;
  }),
  $filter: filter,
  $map: map,
  $reduce: reduce,
  $in: membership,
  $indexOfArray: variadic(indexOfArray, 2, 4),
  $isArray: unary((value) => Array.isArray(value)),
  $range: variadic(range, 2, 3),
  $reverseArray: unary((value, scope) => {
    if (isNullish(value)) return null;
    const array = requireArray(value, 'The argument to $reverseArray must be an array', 34435);
    countRounds(scope, array.length);
    return [...array].reverse();
  }),
  $size: unary((value) => requireArray(value, 'The argument to $size must be an array', 17124).length),
  $slice: variadic(slice, 2, 3),
  $sortArray: sortArray,
  $zip: zip,
};
