import { invalid, type AppError } from '../../../errors.js';

/**
 * The database's code for a document that an index of several fields cannot hold, since two of them lead through
 * different arrays.
 */
export const PARALLEL_ARRAYS = 171;

export const PARALLEL_ARRAYS_TEXT =
  'An index of the collection covers two fields that are arrays in this document: only one of them may be an array';

/** The 400 for such a document. */
export function parallelArrays(): AppError {
  return invalid('VALIDATION_FAILED', `Validation failed: ${PARALLEL_ARRAYS_TEXT}`);
}

/** A value and the path that is still to be followed from it. */
interface Step {
  value: unknown;
  rest: readonly string[];
}

/**
 * True if an index over these paths refuses the document, by the database's own rule: arrays are searched one at a
 * time, item by item.
 */
export function hasParallelArrays(document: Record<string, unknown>, paths: readonly string[]): boolean {
  return meetParallel(paths.map((path) => ({ value: document, rest: path.split('.') })));
}

function meetParallel(steps: readonly Step[]): boolean {
  const inArray = steps.map(followToArray).filter(({ value }) => Array.isArray(value));
  const [first, ...others] = inArray;
  if (!first) return false;
  if (others.some(({ value }) => value !== first.value)) return true;
  const deeper = inArray.filter(({ rest }) => rest.length > 0);
  return (
    deeper.length > 1 &&
    (first.value as unknown[]).some(
      (item) => !Array.isArray(item) && meetParallel(deeper.map(({ rest }) => ({ value: item, rest }))),
    )
  );
}

function followToArray({ value, rest }: Step): Step {
  let at = 0;
  while (at < rest.length && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    value = Object.hasOwn(value, rest[at]!) ? (value as Record<string, unknown>)[rest[at]!] : undefined;
    at++;
  }
  return { value, rest: rest.slice(at) };
}
