import { refusal } from '../../errors.js';
import { isNullish, isTruthy, typeOf } from '../value.js';
import { keyOf } from '../value-key.js';
import { binary, type OperatorTable, unary, variadic } from './operator.js';

function requireArray(value: unknown, name: string, code: number): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw refusal(code, `All operands of ${name} must be arrays. One argument is of type: ${typeOf(value)}`);
}

function keysOf(items: readonly unknown[]): Set<unknown> {
  return new Set(items.map(keyOf));
}

/** Keeps the first of equal items whose keys pass. */
function distinct(items: readonly unknown[], passes: (key: unknown) => boolean = () => true): unknown[] {
  const seen = new Set<unknown>();
  return items.filter((item) => {
    const key = keyOf(item);
    if (seen.has(key) || !passes(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Arrays as sets: duplicates do not count; the order of results is that of first appearance. */
export const setOperators: OperatorTable = {
  $setUnion: variadic((values) => {
    if (values.some(isNullish)) return null;
    return distinct(values.flatMap((value) => requireArray(value, '$setUnion', 17043)));
  }),
  $setIntersection: variadic((values) => {
    if (values.some(isNullish)) return null;
    const [first = [], ...others] = values.map((value) => requireArray(value, '$setIntersection', 17047));
    const keys = others.map(keysOf);
    return distinct(first, (key) => keys.every((set) => set.has(key)));
  }),
  $setDifference: binary((a, b) => {
    if (isNullish(a) || isNullish(b)) return null;
    const from = requireArray(a, '$setDifference', 17048);
    const removed = keysOf(requireArray(b, '$setDifference', 17049));
    return distinct(from, (key) => !removed.has(key));
  }),
  $setEquals: variadic((values) => {
    const [first, ...others] = values.map((value) => keysOf(requireArray(value, '$setEquals', 17044)));
    return others.every((set) => set.size === first!.size && [...set].every((key) => first!.has(key)));
  }, 2),
  $setIsSubset: binary((a, b) => {
    const part = requireArray(a, '$setIsSubset', 17046);
    const whole = keysOf(requireArray(b, '$setIsSubset', 17042));
    return part.every((item) => whole.has(keyOf(item)));
  }),
  $anyElementTrue: unary((value) => requireArray(value, '$anyElementTrue', 17041).some(isTruthy)),
  $allElementsTrue: unary((value) => requireArray(value, '$allElementsTrue', 17040).every(isTruthy)),
};
