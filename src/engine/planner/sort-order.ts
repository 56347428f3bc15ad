import type { SortPart } from '../query/sort.js';
import type { RangeField, SpaceBounds } from './key-ranges.js';
import type { Plan } from './plan.js';

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

/**
 * True when entries of all plans, each in the wanted order, compare as their documents do: behind the fields that are
 * bound to one value in each range, the keys have the same fields and then the `_id`. So an entry says all that merging
 * them has to know, and two that are the same there are of one document.
 */
export function mergesByKeys(plans: readonly Plan[], sort: readonly SortPart[]): boolean {
  const [first, ...others] = plans;
  if (first === undefined || !plans.every((plan) => hasTail(plan, sort))) return false;
  return others.every((other) => other.reverse === first.reverse && haveSameTails(first, other));
}

function hasTail({ index, bounds, single, sorted }: Plan, sort: readonly SortPart[]): boolean {
  if (index === null || single || !sorted) return false;
  if (index.definition.unique || index.isGeo || index.definition.cut) return false;
  // A field that is bound to a value in one range may have another in the next.
  return !sort.some(({ path }) => index.fields.slice(0, bounds.points.length).some((field) => field.path === path));
}

/** True when the keys of both plans have the same fields behind those that are bound to one value. */
export function haveSameTails(a: Plan, b: Plan): boolean {
  const [left, right] = [tailOf(a), tailOf(b)];
  return (
    a.index!.collation === b.index!.collation &&
    left.length === right.length &&
    left.every(({ path, descending }, n) => path === right[n]!.path && descending === right[n]!.descending)
  );
}

function tailOf({ index, bounds }: Plan): readonly RangeField[] {
  return index!.fields.slice(bounds.points.length);
}
