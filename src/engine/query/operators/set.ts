import { CODES, EngineError, refusal } from '../../errors.js';
import { isNullish, isTruthy, typeOf } from '../values/value.js';
import { keyOf } from '../values/value-key.js';
import { MAX_ITEMS } from '../values/weight.js';
import { binary, countRounds, type OperatorTable, type Scope, unary, variadic } from './operator.js';

function requireArray(value: unknown, name: string, code: number): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw refusal(code, `All operands of ${name} must be arrays. One argument is of type: ${typeOf(value)}`);
}

/** One after the other: null at the first one that is missing, unless something else than an array came before it. */
function requireArrays(values: readonly unknown[], name: string, code: number): (readonly unknown[])[] | null {
  const lists: (readonly unknown[])[] = [];
  for (const value of values) {
    if (isNullish(value)) return null;
    lists.push(requireArray(value, name, code));
  }
  return lists;
}

function keysOf(items: readonly unknown[], scope: Scope): Set<unknown> {
  const keys = new Set<unknown>();
  for (const item of items) {
    countRounds(scope);
    keys.add(keyOf(item));
  }
  return keys;
}

/** Keeps the first of equal items whose keys pass. */
function distinct(
  lists: readonly (readonly unknown[])[],
  scope: Scope,
  passes: (key: unknown) => boolean = () => true,
): unknown[] {
  const seen = new Set<unknown>();
  const kept: unknown[] = [];
  for (const items of lists) {
    for (const item of items) {
      countRounds(scope);
      const key = keyOf(item);
      if (seen.has(key) || !passes(key)) continue;
      seen.add(key);
      if (kept.push(item) > MAX_ITEMS) {
        throw new EngineError(CODES.ExceededMemoryLimit, 'a set would use too much memory');
      }
    }
  }
  return kept;
}

/** Arrays as sets: duplicates do not count; the order of results is that of first appearance. */
export const setOperators: OperatorTable = {
  $setUnion: variadic((values, scope) => {
    const lists = requireArrays(values, '$setUnion', 17043);
    return lists === null ? null : distinct(lists, scope);
  }),
  $setIntersection: variadic((values, scope) => {
    const lists = requireArrays(values, '$setIntersection', 17047);
    if (lists === null) return null;
    const [first = [], ...others] = lists;
    const keys = others.map((items) => keysOf(items, scope));
    return distinct([first], scope, (key) => keys.every((set) => set.has(key)));
  }),
  $setDifference: binary((a, b, scope) => {
    if (isNullish(a) || isNullish(b)) return null;
    const from = requireArray(a, '$setDifference', 17048);
    const removed = keysOf(requireArray(b, '$setDifference', 17049), scope);
    return distinct([from], scope, (key) => !removed.has(key));
  }),
  $setEquals: variadic((values, scope) => {
    const [first, ...others] = values.map((value) => keysOf(requireArray(value, '$setEquals', 17044), scope));
    return others.every((set) => set.size === first!.size && [...set].every((key) => first!.has(key)));
  }, 2),
  $setIsSubset: binary((a, b, scope) => {
    const part = requireArray(a, '$setIsSubset', 17046);
    const whole = keysOf(requireArray(b, '$setIsSubset', 17042), scope);
    return part.every((item) => {
      countRounds(scope);
      return whole.has(keyOf(item));
    });
  }),
  $anyElementTrue: unary((value) => requireArray(value, '$anyElementTrue', 17041).some(isTruthy)),
  $allElementsTrue: unary((value) => requireArray(value, '$allElementsTrue', 17040).every(isTruthy)),
};
