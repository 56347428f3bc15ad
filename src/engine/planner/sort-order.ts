import type { SortPart } from '../query/sort.js';
import type { RangeField, SpaceBounds } from './key-ranges.js';

const NUMERIC_PART = /(?:^|\.)\d+(?:\.|$)/;

/** True if a part of the path may be a position in a list, which an index does not tell from a name. */
export function isNumericPath(path: string): boolean {
  return NUMERIC_PART.test(path);
}

export interface KeyOrder {
  /** Keys compare as the values do. */
  ordered: boolean;
  /** Bit n is set when field n holds arrays. */
  arrays: number;
  /** Keys of equal fields follow each other by `_id`. */
  endsWithId: boolean;
  /** Each range has one value of every list, and is looked at by itself. */
  listsMerged: boolean;
}

/** The direction in which the key space has the order of `sort`, null when it has not. */
export function sortOrder(
  fields: readonly RangeField[],
  { points }: SpaceBounds,
  sort: readonly SortPart[],
  { ordered, arrays, endsWithId, listsMerged }: KeyOrder,
): 'forward' | 'backward' | null {
  if (sort.length === 0) return 'forward';
  if (!ordered) return null;
  const holdsArrays = (field: number): boolean => ((arrays >>> field) & 1) === 1;
  const isBound = (field: number): boolean => field < points.length && (listsMerged || points[field]!.length === 1);
  // A document whose array is not bound to one value comes several times, at several places.
  if (fields.some((_, field) => holdsArrays(field) && !isBound(field))) return null;
  const constant = new Set<string>();
  let at = 0;
  const passBound = (): void => {
    // A document's array sorts by its least or greatest element, whichever it was found by.
    for (; isBound(at); at++) if (!holdsArrays(at)) constant.add(fields[at]!.path);
  };
  passBound();
  let direction: 'forward' | 'backward' | null = null;
  const all = endsWithId ? [...fields, { path: '_id', descending: false }] : fields;
  for (const { path, dir } of sort) {
    if (constant.has(path)) continue;
    const field = all[at];
    // Beyond the fields of a unique key nothing is left to sort, unless a list was expanded before.
    if (field === undefined) return !endsWithId && at === fields.length ? (direction ?? 'forward') : null;
    if (field.path !== path || isNumericPath(path)) return null;
    const wanted = (dir === 1) !== field.descending ? 'forward' : 'backward';
    if (direction !== null && direction !== wanted) return null;
    direction = wanted;
    at++;
    passBound();
  }
  return direction ?? 'forward';
}
