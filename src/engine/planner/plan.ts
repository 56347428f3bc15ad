import { type Conjunct } from '../query/match/match.js';
import { type SortPart } from '../query/sort.js';
import { type CollectionEntry, type IndexEntry } from '../storage/keys/index-definition.js';
import { comparableKind } from '../storage/encoding/comparable-kind.js';
import { collectBounds, type FieldBounds } from './bounds.js';
import {
  documentSpace,
  fitsRanges,
  indexSpace,
  type KeyRange,
  keyRanges,
  type KeySpace,
  type SpaceBounds,
} from './key-ranges.js';
import { impliesAll } from './partial.js';

/** What to read, in which order. It may yield more than the filter wants, never less. */
export interface Plan {
  /** Null: the documents themselves, in the order of `_id`. */
  readonly index: IndexEntry | null;
  readonly ranges: readonly KeyRange[];
  readonly reverse: boolean;
  /** The documents come in the order of the requested sort. */
  readonly sorted: boolean;
  /** A document may come more than once. */
  readonly repeats: boolean;
  /** Every entry of the ranges is an answer: counting them needs no documents. */
  readonly exact: boolean;
  readonly bounds: SpaceBounds;
  /** At most one document can be in the ranges: the start of the only one is its key. */
  readonly single: boolean;
}

export interface PlanQuery {
  conjuncts: readonly Conjunct[];
  residual: boolean;
  sort: readonly SortPart[];
  limit: number;
  /** An index the caller insists on; `natural` is a scan of the collection in the given direction. */
  hint?: IndexEntry | { natural: 1 | -1 } | undefined;
}

/** Counts the entries of a plan's ranges, but not beyond `most`. */
export type Probe = (plan: Plan, most: number) => number;

/** So many entries are counted at first, and so many if none of the plans has fewer. */
const PROBES = [64, 200];
const NUMERIC_PART = /(?:^|\.)\d+(?:\.|$)/;

/**
 * Chooses how to read: equalities first, then one range or list, then the sort. Between several indexes a short look at
 * how many entries each would read decides.
 */
export function choosePlan(collection: CollectionEntry, query: PlanQuery, probe: Probe): Plan {
  const bounds = collectBounds(query.conjuncts);
  const scan = documentPlan(collection, bounds, query);
  if (query.hint !== undefined) {
    if (!('natural' in query.hint)) return indexPlan(query.hint, bounds, query);
    return scanWhole(collection, query, query.hint.natural === -1);
  }
  if (scan.single) return scan;
  const plans: Plan[] = [];
  for (const index of collection.indexes) {
    if (!isUsable(index, bounds, query)) continue;
    const plan = indexPlan(index, bounds, query);
    if (plan.single) return plan;
    if (isBounded(plan) || (plan.sorted && query.sort.length > 0)) plans.push(plan);
  }
  if (isBounded(scan) || (scan.sorted && query.sort.length > 0)) plans.push(scan);
  if (plans.length === 0) return scan;
  // Reading nothing but answers, in the wanted order, cannot be beaten.
  const best = plans.find((plan) => plan.exact && plan.sorted && isBounded(plan));
  if (best !== undefined) return best;
  return plans.length === 1 ? plans[0]! : cheapest(plans, query, probe);
}

/** All plans that `explain` may name: the indexes that could serve the query at all. */
export function usableIndexes(collection: CollectionEntry, query: PlanQuery): IndexEntry[] {
  const bounds = collectBounds(query.conjuncts);
  return collection.indexes.filter((index) => isUsable(index, bounds, query));
}

function cheapest(plans: readonly Plan[], query: PlanQuery, probe: Probe): Plan {
  const wantsSort = query.sort.length > 0;
  let most = 0;
  let counts: number[] = [];
  for (most of PROBES) {
    counts = plans.map((plan) => (isBounded(plan) ? probe(plan, most) : Infinity));
    if (counts.some((count) => count < most)) break;
  }
  const ranked = plans.map((plan, n) => ({ plan, entries: counts[n]!, useful: usefulness(plan) }));
  ranked.sort((a, b) => {
    const aSmall = a.entries < most;
    const bSmall = b.entries < most;
    if (aSmall !== bSmall) return aSmall ? -1 : 1;
    if (aSmall && bSmall && a.entries !== b.entries) return a.entries - b.entries;
    if (wantsSort && a.plan.sorted !== b.plan.sorted) return a.plan.sorted ? -1 : 1;
    return b.useful - a.useful;
  });
  return ranked[0]!.plan;
}

function usefulness(plan: Plan): number {
  const equalities = plan.bounds.points.reduce((sum, values) => sum + (values.length === 1 ? 4 : 3), 0);
  return equalities + (plan.bounds.range === null ? 0 : 2) + (plan.exact ? 1 : 0);
}

function isBounded(plan: Plan): boolean {
  return plan.bounds.points.length > 0 || plan.bounds.range !== null;
}

function isUsable(index: IndexEntry, bounds: ReadonlyMap<string, FieldBounds>, query: PlanQuery): boolean {
  const { definition } = index;
  if (definition.state !== 'ready' || definition.hidden) return false;
  if (definition.sparse && !index.fields.some((field) => bounds.get(field.path)?.present === true)) return false;
  return index.condition === null || (index.condition !== 'unknown' && impliesAll(query.conjuncts, index.condition));
}

function indexPlan(index: IndexEntry, bounds: ReadonlyMap<string, FieldBounds>, query: PlanQuery): Plan {
  const space = indexSpace(index);
  const used = boundsOf(space, bounds, index.definition.multikey);
  const { ranges, widened } = keyRanges(space, used);
  const order = sortOrder(index.fields, used, query.sort, {
    ordered: !index.definition.cut && index.definition.multikey === 0,
    endsWithId: !index.definition.unique,
  });
  const allPoints = used.points.length === index.fields.length;
  return {
    index,
    ranges: order === 'backward' ? [...ranges].reverse() : ranges,
    reverse: order === 'backward',
    sorted: order !== null,
    repeats: index.definition.multikey !== 0,
    exact:
      !widened &&
      !index.definition.cut &&
      index.definition.multikey === 0 &&
      isExact(query, space.fields, used, bounds, index),
    bounds: used,
    single: index.definition.unique && allPoints && used.points.every((values) => values.length === 1) && !widened,
  };
}

function documentPlan(collection: CollectionEntry, bounds: ReadonlyMap<string, FieldBounds>, query: PlanQuery): Plan {
  const space = documentSpace(collection.id);
  const used = boundsOf(space, bounds, 0);
  const { ranges, widened } = keyRanges(space, used);
  const order = sortOrder(space.fields, used, query.sort, {
    ordered: collection.definition.longIds !== true,
    endsWithId: false,
  });
  return {
    index: null,
    ranges: order === 'backward' ? [...ranges].reverse() : ranges,
    reverse: order === 'backward',
    sorted: order !== null,
    repeats: false,
    exact: !widened && collection.definition.longIds !== true && isExact(query, space.fields, used, bounds, null),
    bounds: used,
    single: used.points.length === 1 && used.points[0]!.length === 1,
  };
}

function scanWhole(collection: CollectionEntry, query: PlanQuery, reverse: boolean): Plan {
  const used: SpaceBounds = { points: [], range: null };
  const { ranges } = keyRanges(documentSpace(collection.id), used);
  return {
    index: null,
    ranges,
    reverse,
    sorted: query.sort.length === 0,
    repeats: false,
    exact: query.conjuncts.length === 0 && !query.residual,
    bounds: used,
    single: false,
  };
}

/** The longest usable prefix of the fields: equalities and lists, then at most one range. */
function boundsOf(space: KeySpace, bounds: ReadonlyMap<string, FieldBounds>, multikey: number): SpaceBounds {
  const points: (readonly unknown[])[] = [];
  const arrayRoots = new Set<string>();
  for (const [n, field] of space.fields.entries()) {
    const condition = bounds.get(field.path);
    if (condition === undefined || NUMERIC_PART.test(field.path)) break;
    const isArray = (multikey & (1 << n)) !== 0;
    if (isArray) {
      // Two conditions on the elements of one array may be met by different elements, which have different entries.
      const root = field.path.split('.')[0]!;
      if (arrayRoots.has(root)) break;
      arrayRoots.add(root);
    }
    if (condition.points !== null && fitsRanges(points, condition.points.length)) {
      points.push(condition.points);
      continue;
    }
    if (condition.lower === null && condition.upper === null) break;
    return { points, range: { bounds: condition, oneSided: isArray || !sameKind(condition) } };
  }
  return { points, range: null };
}

/** Bounds of different types exclude each other; taking one side is simply enough. */
function sameKind({ lower, upper }: FieldBounds): boolean {
  return lower === null || upper === null || comparableKind(lower.value)![0] === comparableKind(upper.value)![0];
}

/** The direction in which the key space has the order of `sort`, null when it has not. */
function sortOrder(
  fields: readonly { path: string; descending: boolean }[],
  used: SpaceBounds,
  sort: readonly SortPart[],
  { ordered, endsWithId }: { ordered: boolean; endsWithId: boolean },
): 'forward' | 'backward' | null {
  if (sort.length === 0) return 'forward';
  if (!ordered) return null;
  const constant = new Set<string>();
  let at = 0;
  while (at < used.points.length && used.points[at]!.length === 1) constant.add(fields[at++]!.path);
  let direction: 'forward' | 'backward' | null = null;
  const all = endsWithId ? [...fields, { path: '_id', descending: false }] : fields;
  for (const { path, dir } of sort) {
    if (constant.has(path)) continue;
    const field = all[at];
    // Beyond the fields of a unique key nothing is left to sort, unless a list was expanded before.
    if (field === undefined) return !endsWithId && at === fields.length ? (direction ?? 'forward') : null;
    if (field.path !== path || NUMERIC_PART.test(path)) return null;
    const wanted = (dir === 1) !== field.descending ? 'forward' : 'backward';
    if (direction !== null && direction !== wanted) return null;
    direction = wanted;
    at++;
    while (at < used.points.length && used.points[at]!.length === 1) constant.add(all[at++]!.path);
  }
  // A list on a field behind the sorted ones is fine: the ranges stay in key order.
  return direction ?? 'forward';
}

function isExact(
  query: PlanQuery,
  fields: readonly { path: string }[],
  used: SpaceBounds,
  bounds: ReadonlyMap<string, FieldBounds>,
  index: IndexEntry | null,
): boolean {
  if (query.residual) return false;
  const covered = new Set<Conjunct>();
  const boundFields = used.points.length + (used.range === null ? 0 : 1);
  for (const [n, field] of fields.slice(0, boundFields).entries()) {
    const condition = bounds.get(field.path)!;
    for (const conjunct of query.conjuncts) {
      if (conjunct.path !== field.path) continue;
      if (isUsedBy(conjunct, condition, n < used.points.length, used.range?.oneSided === true)) covered.add(conjunct);
    }
  }
  return query.conjuncts.every(
    (conjunct) =>
      covered.has(conjunct) ||
      (Array.isArray(index?.condition) && impliesAll(index.condition as readonly Conjunct[], [conjunct])),
  );
}

function isUsedBy(conjunct: Conjunct, condition: FieldBounds, asPoints: boolean, oneSided: boolean): boolean {
  const { op, value } = conjunct;
  if (asPoints) {
    const points = condition.points!;
    return op === 'in' ? value === points : op === 'eq' && points.length === 1 && value === points[0];
  }
  const { lower, upper } = condition;
  if (op === 'gt' || op === 'gte') return value === lower?.value && (op === 'gte') === lower?.inclusive;
  if (op !== 'lt' && op !== 'lte') return false;
  return value === upper?.value && (op === 'lte') === upper?.inclusive && (!oneSided || lower === null);
}
