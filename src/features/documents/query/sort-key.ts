import type { ObjectId } from 'bson';
import type { SortField } from './parse-sort.js';

/** Place of a value's type in the order in which the database sorts mixed values. */
export const RANK = {
  empty: 0,
  null: 1,
  number: 2,
  string: 3,
  object: 4,
  array: 5,
  id: 7,
  boolean: 8,
  date: 9,
} as const;
export type Rank = (typeof RANK)[keyof typeof RANK];

/**
 * The key a document is sorted by: of an array its smallest or largest item; an empty array stands below null, a
 * missing value is null.
 */
export type SortKey = { rank: typeof RANK.empty } | { rank: Exclude<Rank, typeof RANK.empty>; value: unknown };

const EMPTY: SortKey = { rank: RANK.empty };

/** The key by which the database sorts a document on one field. Throws on values that a document cannot hold. */
export function sortKeyOf(document: Record<string, unknown>, { path, direction }: SortField): SortKey {
  let best: SortKey | null = null;
  // One by one: an array can have a million items.
  visitKeys(document, path.split('.'), (key) => {
    if (!best || compareKeys(key, best) * direction < 0) best = key;
  });
  return best!;
}

/**
 * Visits each sort key of a value: every value of an array on the way is one; a path that cannot be followed counts as
 * null.
 */
function visitKeys(value: unknown, path: readonly string[], visit: (key: SortKey) => void): void {
  const [part, ...rest] = path;
  if (part === undefined) {
    if (!Array.isArray(value)) visit(keyOf(value));
    else if (value.length === 0) visit(EMPTY);
    else for (const item of value) visit(keyOf(item));
  } else if (Array.isArray(value)) {
    if (value.length === 0) visit(keyOf(null));
    for (const item of value) {
      if (Array.isArray(item)) visit(keyOf(null));
      else visitKeys(item, path, visit);
    }
  } else {
    visitKeys(isObject(value) && Object.hasOwn(value, part) ? value[part] : null, rest, visit);
  }
}

function keyOf(value: unknown): SortKey {
  return { rank: rankOf(value), value: value ?? null };
}

function rankOf(value: unknown): Rank {
  if (value === null || value === undefined) return RANK.null;
  if (typeof value === 'number') return RANK.number;
  if (typeof value === 'string') return RANK.string;
  if (typeof value === 'boolean') return RANK.boolean;
  if (Array.isArray(value)) return RANK.array;
  if (value instanceof Date) return RANK.date;
  // Not by class: the driver may bring its own copy of it.
  if ((value as { _bsontype?: unknown })._bsontype === 'ObjectId') return RANK.id;
  if (isObject(value)) return RANK.object;
  throw new TypeError(`a document holds a value of unknown type: ${typeof value}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !('_bsontype' in value) && !(value instanceof Date);
}

/** The database's order between two keys of a field, ascending. */
export function compareKeys(a: SortKey, b: SortKey): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  return 'value' in a && 'value' in b ? compareSortValues(a.value, b.value) : 0;
}

/** The database's order between two stored values: by type, then by content; texts by their bytes. */
function compareSortValues(a: unknown, b: unknown): number {
  const rank = rankOf(a);
  const difference = rank - rankOf(b);
  if (difference !== 0) return difference;
  switch (rank) {
    case RANK.number:
    case RANK.boolean:
    case RANK.date:
      return Number(a) - Number(b) || Number(Number(a) > Number(b)) - Number(Number(a) < Number(b));
    case RANK.string:
      return compareTexts(a as string, b as string);
    case RANK.id:
      return compareTexts((a as ObjectId).toHexString(), (b as ObjectId).toHexString());
    case RANK.array:
      return compareEntries((a as unknown[]).entries(), (b as unknown[]).entries());
    case RANK.object:
      return compareEntries(Object.entries(a as object).values(), Object.entries(b as object).values());
    default:
      return 0;
  }
}

/** Field by field: type first, then name, then value; what ends first is smaller. */
function compareEntries(a: Iterator<[number | string, unknown]>, b: Iterator<[number | string, unknown]>): number {
  for (;;) {
    const [left, right] = [a.next(), b.next()];
    if (left.done || right.done) return Number(!left.done) - Number(!right.done);
    const [leftName, leftValue] = left.value;
    const [rightName, rightValue] = right.value;
    const difference =
      rankOf(leftValue) - rankOf(rightValue) ||
      compareTexts(String(leftName), String(rightName)) ||
      compareSortValues(leftValue, rightValue);
    if (difference !== 0) return difference;
  }
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
