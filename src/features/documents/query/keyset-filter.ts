import type { Document } from 'bson';
import type { SortField } from './parse-sort.js';
import { RANK, type SortKey } from './sort-key.js';

/**
 * Names of the types in sort order, by rank. Comparisons of a query look only at values of the operand's own type, so
 * what lies beyond the type must be named. `array` is left out: on a field it means the field itself, not an item of
 * it.
 */
const TYPES: readonly (readonly [number, string])[] = [
  [RANK.number, 'number'],
  [RANK.string, 'string'],
  [RANK.object, 'object'],
  [6, 'binData'],
  [RANK.id, 'objectId'],
  [RANK.boolean, 'bool'],
  [RANK.date, 'date'],
  [10, 'timestamp'],
  [11, 'regex'],
];

/** Fields that the service writes itself: always there, one value of one type. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set(['_id', 'createdAt', 'updatedAt']);

/**
 * Filters for the documents that sort after a position, given by one key per sort field. To be run one after the other,
 * each in the sort's order, until the page is full: the first is bounded by an index where the leading field has one;
 * the second covers the types that follow. Right for any mixture of missing, null, scalar, array and object values,
 * with documented query semantics only.
 */
export function keysetFilters(sort: readonly SortField[], position: readonly SortKey[]): Document[] {
  const orders = sort.map((field, at) => orderAt(field, position[at]!));
  const steps: Document[] = [];
  for (const [at, order] of orders.entries()) {
    // What an index can look up goes first: with a field of few values, most are equal to the position's.
    const narrowed = at === 0 && order.bound && order.beyond ? [order.beyond] : [];
    if (order.after) steps.push(allOf([...orders.slice(0, at).map(({ equal }) => equal), ...narrowed, order.after]));
  }
  const beyond = steps.length === 1 ? steps[0]! : { $or: steps };
  const { bound, later } = orders[0]!;
  return [bound ? allOf([bound, beyond]) : beyond, ...(bound && later ? [later] : [])];
}

/** Conditions on one field around a position in its order. */
interface FieldOrder {
  equal: Document;
  /** Null when nothing can follow. */
  after: Document | null;
  /** Holds for everything equal or after that has the position's type, and can be looked up in an index. */
  bound: Document | null;
  /** Holds for what is after the position and satisfies `bound`, and can be looked up; null when `after` itself can. */
  beyond: Document | null;
  /** The condition for all values of later types; null when `bound` covers them, or there is no bound. */
  later: Document | null;
}

function orderAt({ path, direction }: SortField, key: SortKey): FieldOrder {
  if (PLAIN_FIELDS.has(path) && 'value' in key && key.rank !== RANK.null) {
    return {
      equal: { [path]: { $eq: key.value } },
      after: { [path]: { [direction === 1 ? '$gt' : '$lt']: key.value } },
      bound: { [path]: { [direction === 1 ? '$gte' : '$lte']: key.value } },
      beyond: null,
      later: null,
    };
  }
  return direction === 1 ? ascending(path, key) : descending(path, key);
}

/** The smallest key counts: a document is after the position when nothing in it is at or below it. */
function ascending(path: string, key: SortKey): FieldOrder {
  const empty = { [path]: { $size: 0 } };
  const nothing = nullish(path);
  if (key.rank === RANK.empty) return { equal: empty, after: { $nor: [empty] }, ...UNBOUND };
  if (key.rank === RANK.null) {
    const after = { $nor: [empty, ...nothing] };
    return { equal: allOf([{ $or: nothing }, { $nor: [empty] }]), after, ...boundOfNull(path, after) };
  }
  const below = [empty, ...nothing, ...typed(path, (rank) => rank < key.rank)];
  return {
    equal: allOf([compare(path, '$eq', key), { $nor: [...below, compare(path, '$lt', key)] }]),
    after: { $nor: [...below, compare(path, '$lte', key)] },
    bound: compare(path, '$gte', key),
    beyond: compare(path, '$gt', key),
    later: { $nor: [...below, ...typed(path, (rank) => rank === key.rank)] },
  };
}

/** The largest key counts: a document is after the position when nothing in it is at or above it. */
function descending(path: string, key: SortKey): FieldOrder {
  const nothing = nullish(path);
  const something = typed(path, () => true);
  const onlyEmpty = { $nor: [...something, ...nothing] };
  if (key.rank === RANK.empty) return { equal: onlyEmpty, after: null, ...UNBOUND };
  if (key.rank === RANK.null) {
    return {
      equal: allOf([{ $or: nothing }, { $nor: something }]),
      after: onlyEmpty,
      ...boundOfNull(path, onlyEmpty),
    };
  }
  const above = typed(path, (rank) => rank > key.rank);
  return {
    equal: allOf([compare(path, '$eq', key), ...none([...above, compare(path, '$gt', key)])]),
    after: { $nor: [...above, compare(path, '$gte', key)] },
    bound: compare(path, '$lte', key),
    beyond: compare(path, '$lt', key),
    later: { $nor: [...above, ...typed(path, (rank) => rank === key.rank)] },
  };
}

const UNBOUND = { bound: null, beyond: null, later: null };

function boundOfNull(path: string, later: Document): Pick<FieldOrder, 'bound' | 'beyond' | 'later'> {
  return path.includes('.') ? UNBOUND : { bound: { [path]: null }, beyond: null, later };
}

/**
 * The conditions for values that sort as null: no value, null, and a path that cannot be followed because an array on
 * the way holds something other than an object.
 */
function nullish(path: string): Document[] {
  const parts = path.split('.');
  const ways = parts.slice(1).map((_, at) => parts.slice(0, at + 1).join('.'));
  return [
    { [path]: null },
    { [path]: { $exists: false } },
    ...ways.map((way) => ({ [way]: { $elemMatch: { $not: { $type: 'object' } } } })),
  ];
}

/** Some item, or the value itself, is of a type whose rank is wanted. Arrays count as such only inside of arrays. */
function typed(path: string, wanted: (rank: number) => boolean): Document[] {
  const types = TYPES.filter(([rank]) => wanted(rank)).map(([, name]) => name);
  const conditions: Document[] = types.length > 0 ? [{ [path]: { $type: types } }] : [];
  if (wanted(RANK.array)) conditions.push({ [path]: { $elemMatch: { $type: 'array' } } });
  return conditions;
}

function compare(path: string, operator: string, key: SortKey): Document {
  const value = 'value' in key ? key.value : null;
  return { [path]: key.rank === RANK.array ? { $elemMatch: { [operator]: value } } : { [operator]: value } };
}

function none(conditions: Document[]): Document[] {
  return conditions.length > 0 ? [{ $nor: conditions }] : [];
}

/** All of one or more conditions as one. */
export function allOf(conditions: readonly Document[]): Document {
  return conditions.length === 1 ? conditions[0]! : { $and: conditions };
}
