import type { Fields } from './change.js';

type Scalar = string | number | boolean;
type Test = (document: Fields) => boolean;

/** Comparisons by the end of a parameter's name: what others come to, only the service knows. */
const FORMS: Readonly<Record<string, (value: unknown, given: Scalar) => boolean>> = {
  gt: (value, given) => order(value, given) > 0,
  gte: (value, given) => order(value, given) >= 0,
  lt: (value, given) => order(value, given) < 0,
  lte: (value, given) => order(value, given) <= 0,
  startswith: (value, given) => typeof value === 'string' && value.startsWith(String(given)),
};
const FORM = /^(.+?)_(gte?|lte?|ne|in|exists|startswith|regex|near|within)$/;

/** NaN, which is neither less nor more, for what has no order. */
function order(value: unknown, given: Scalar): number {
  if (typeof value === 'number') return value - Number(given);
  if (typeof value !== 'string') return NaN;
  return value < String(given) ? -1 : Number(value > String(given));
}

/** As a query has them: text. */
const isScalar = (value: unknown): value is Scalar => /string|number|boolean/.test(typeof value);
const isEqual = (value: unknown, given: Scalar): boolean => isScalar(value) && String(value) === String(given);

/** Every value at a path, the items of lists too. */
function valuesAt(value: unknown, [part, ...rest]: readonly string[]): unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, part === undefined ? [] : [part, ...rest]));
  return part === undefined ? [value] : valuesAt((value as Fields | null | undefined)?.[part], rest);
}

/**
 * A filter of a list as a test of documents; null for one that the service has to carry out, or to refuse. Dates are
 * texts in it already.
 */
export function readFilter(filter: Fields = {}): Test | null {
  const tests: Test[] = [];
  for (const [name, given] of Object.entries(filter)) {
    const test = readCondition(name, given);
    if (!test) return null;
    tests.push(test);
  }
  return (document) => tests.every((test) => test(document));
}

function readCondition(name: string, given: unknown): Test | null {
  const list = Array.isArray(given) ? (given as unknown[]) : [given];
  if (list.length === 0) return null;
  if (name === 'or' && typeof list[0] === 'object') {
    const tests = list.map((each) => readFilter(each as Fields));
    return tests.includes(null) ? null : (document) => tests.some((test) => test!(document));
  }
  const values = list.filter(isScalar);
  if (values.length < list.length) return null;
  const [, path = name, form = ''] = FORM.exec(name) ?? [];
  const parts = path.split('.');
  const found = (document: Fields): unknown[] => valuesAt(document, parts);
  const isAny: Test = (document) => found(document).some((value) => values.some((each) => isEqual(value, each)));
  if (form === '' || form === 'in') return isAny;
  if (form === 'ne') return (document) => !isAny(document);
  if (form === 'exists') {
    return (document) => found(document).some((value) => value !== undefined) === (String(given) === 'true');
  }
  const compare = FORMS[form];
  return compare ? (document) => found(document).some((value) => compare(value, values[0]!)) : null;
}
