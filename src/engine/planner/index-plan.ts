import { badValue } from '../errors.js';
import { type Collation, holdsText } from '../query/collation/collation.js';
import { type Cell, codesWithin, type Region } from '../query/geometry/cell.js';
import type { Conjunct } from '../query/match/match.js';
import { comparableKind } from '../storage/encoding/comparable-kind.js';
import type { CollectionEntry, IndexEntry } from '../storage/keys/index-definition.js';
import { collectBounds, type FieldBounds } from './bounds.js';
import {
  documentSpace,
  fitsRanges,
  indexSpace,
  type KeyRange,
  keyRanges,
  type KeySpace,
  type RangeUse,
  type SpaceBounds,
} from './key-ranges.js';
import { implies, impliesAll } from './partial.js';
import { ALONE, isBounded, type Plan, type PlanQuery } from './plan.js';
import { isNumericPath, type KeyOrder, mergesByKeys, sortOrder } from './sort-order.js';
import { coverRegion } from '../query/geometry/region.js';
import { KeyWriter } from '../storage/encoding/key-encoding.js';
import { INDEX_SPACE } from '../storage/format/key-spaces.js';

/** Most plans or ranges read side by side where documents have to be compared instead of keys. */
export const MAX_PLAN_BRANCHES = 200;

/**
 * The plans that read less than everything, or in the wanted order; a single one when nothing can beat it. The whole of
 * a partial index counts as less only `withPartial`: for one of several alternatives, of which each has its part.
 */
export function candidatePlans(collection: CollectionEntry, query: PlanQuery, withPartial = false): Plan[] {
  const served = serveFrom(null, query);
  const scan = documentPlan(collection, served);
  if (scan.single) return [scan];
  const wantsSort = query.sort.length > 0;
  const plans: Plan[] = [];
  const merges: Plan[] = [];
  for (const index of collection.indexes) {
    const own = index.collation === null ? served : serveFrom(index.collation, query);
    if (!isUsable(index, own)) continue;
    if (index.isGeo) {
      plans.push(geoPlan(index, own));
      continue;
    }
    const plan = indexPlan(index, own);
    if (plan.single) return [plan];
    const isPart = withPartial && index.condition !== null;
    if (isBounded(plan) || isPart || (plan.sorted && wantsSort)) plans.push(plan);
    const merge = plan.sorted ? null : mergePlan(index, plan, own.query);
    if (merge !== null) merges.push(merge);
  }
  if (isBounded(scan) || (scan.sorted && wantsSort)) plans.push(scan);
  return [...plans, ...merges];
}

/**
 * For a query in an order: partial indexes that hold all answers, read whole, unless one of the other plans reads
 * nothing else already. Without an order documents come as they are stored, page by page.
 */
export function partialPlans(collection: CollectionEntry, query: PlanQuery, singles: readonly Plan[]): Plan[] {
  if (query.sort.length === 0 || singles.some((plan) => plan.single || (plan.exact && plan.sorted))) return [];
  const held = singles.map(({ index }) => knownCondition(index));
  const plans: Plan[] = [];
  for (const index of collection.indexes) {
    const condition = knownCondition(index);
    if (condition.length === 0 || index.isGeo || index.definition.multikey !== 0) continue;
    if (held.some((conjuncts) => impliesAll(conjuncts, condition))) continue;
    const served = serveFrom(index.collation, query);
    if (!isUsable(index, served)) continue;
    held.push(condition);
    plans.push(indexPlan(index, served));
  }
  return plans;
}

/** Empty for an index of all documents, and where nothing is known. */
function knownCondition(index: IndexEntry | null): readonly Conjunct[] {
  const condition = index?.condition ?? [];
  return condition === 'unknown' ? [] : condition;
}

/** All plans that `explain` may name: the indexes that could serve the query at all. */
export function usableIndexes(collection: CollectionEntry, query: PlanQuery): IndexEntry[] {
  return collection.indexes.filter((index) => !index.isGeo && isUsable(index, serveFrom(index.collation, query)));
}

/** The part of a query that keys of one collation can answer, and the conditions of each path in it. */
export interface Served {
  readonly query: PlanQuery;
  readonly bounds: ReadonlyMap<string, FieldBounds>;
}

/**
 * Leaves of the query what keys with this collation can answer. Keys of another collation than the query's are not in
 * the wanted order and tell nothing of text. A pattern compares text as it is written, so only the simple collation
 * serves it.
 */
export function serveFrom(collation: Collation | null, query: PlanQuery): Served {
  if (collation === null && query.collation === null) return { query, bounds: collectBounds(query.conjuncts) };
  const conjuncts = conjunctsFor(collation, query);
  const residual = query.residual || conjuncts.length < query.conjuncts.length;
  return { query: { ...query, conjuncts, residual }, bounds: collectBounds(conjuncts) };
}

/** The conjuncts that mean the same for keys, or the condition, of an index with this collation. */
export function conjunctsFor(
  collation: Collation | null,
  query: Pick<PlanQuery, 'conjuncts' | 'collation'>,
): readonly Conjunct[] {
  return query.conjuncts.filter(({ op, value }) => {
    if (op === 'prefix') return collation === null;
    return query.collation === collation || op === 'type' || op === 'within' || !holdsText(value);
  });
}

function isUsable(index: IndexEntry, { query, bounds }: Served): boolean {
  const { definition } = index;
  if (definition.state !== 'ready' || definition.hidden) return false;
  if (index.isGeo && (bounds.get(index.fields[0]!.path)?.region ?? null) === null) return false;
  if (definition.sparse && !index.fields.some((field) => bounds.get(field.path)?.present === true)) return false;
  return index.condition === null || (index.condition !== 'unknown' && impliesAll(query.conjuncts, index.condition));
}

/** How an index serves the query, however badly. */
export function indexPlan(index: IndexEntry, { query, bounds }: Served): Plan {
  const space = indexSpace(index);
  const used = boundsOf(space, bounds, index.definition.multikey);
  const { ranges, widened } = keyRanges(space, used);
  const order = sortOrder(index.fields, used, query.sort, orderOf(index, query));
  const once = comesOnce(index, used);
  const allPoints = used.points.length === index.fields.length;
  return {
    index,
    ranges: order === 'backward' ? [...ranges].reverse() : ranges,
    reverse: order === 'backward',
    sorted: order !== null,
    repeats: !once,
    exact: !widened && !index.definition.cut && once && isExact(query, space.fields, used, bounds, index),
    bounds: used,
    single: index.definition.unique && allPoints && used.points.every((values) => values.length === 1) && !widened,
    ...ALONE,
  };
}

/**
 * True when a document has at most one entry in the ranges: each array of the index is bound to one value. Not null,
 * which an entry also holds for an element without the field, so that the filter has to look at the document.
 */
function comesOnce({ definition: { multikey } }: IndexEntry, { points }: SpaceBounds): boolean {
  for (let n = 0; multikey >>> n !== 0; n++) {
    const values = points[n] ?? [];
    if (((multikey >>> n) & 1) === 1 && (values.length !== 1 || values[0] === null)) return false;
  }
  return true;
}

/** How an index of places serves a `$geoWithin`: by the cells that cover the region. 2 when the query has none. */
export function geoPlan(index: IndexEntry, { query: { sort }, bounds }: Served): Plan {
  const condition = bounds.get(index.fields[0]!.path);
  const region = condition?.region ?? null;
  if (region === null) throw badValue(`the index '${index.definition.name}' serves $geoWithin only`);
  return cellPlan(index, regionRanges(index, region), condition!, sort.length === 0);
}

/** The plan that reads the places of one cell. */
export function planCell(index: IndexEntry, cell: Cell): Plan {
  return cellPlan(index, [cellRange(index, cell)], ANY_PLACE, true);
}

const ANY_PLACE: FieldBounds = {
  points: null,
  lower: null,
  upper: null,
  prefix: null,
  region: null,
  present: true,
  absent: false,
};

function cellPlan(index: IndexEntry, ranges: readonly KeyRange[], bounds: FieldBounds, sorted: boolean): Plan {
  return {
    index,
    ranges,
    reverse: false,
    sorted,
    repeats: index.definition.multikey !== 0,
    exact: false,
    bounds: { points: [], range: { bounds, byPrefix: false, oneSided: true } },
    single: false,
    ...ALONE,
  };
}

/** The order of an index's entries, as the planner compares it with a query. */
function orderOf({ definition, collation }: IndexEntry, query: PlanQuery): KeyOrder {
  return {
    ordered: !definition.cut && collation === query.collation,
    arrays: definition.multikey,
    endsWithId: !definition.unique,
    listsMerged: false,
  };
}

/**
 * The ranges of an index's plan, which the values of lists made, read side by side: each is in the wanted order
 * although all of them one after the other are not. Null when it is not so, or when there are too many.
 */
function mergePlan(index: IndexEntry, plan: Plan, query: PlanQuery): Plan | null {
  if (plan.bounds.points.length === 0) return null;
  const order = sortOrder(index.fields, plan.bounds, query.sort, { ...orderOf(index, query), listsMerged: true });
  if (order === null) return null;
  const reverse = order === 'backward';
  const merge = { ...plan, reverse, sorted: true, merges: true };
  return plan.ranges.length > MAX_PLAN_BRANCHES && !mergesByKeys([merge], query.sort) ? null : merge;
}

function documentPlan(collection: CollectionEntry, { query, bounds }: Served): Plan {
  const space = documentSpace(collection.id);
  const used = boundsOf(space, bounds, 0);
  const { ranges, widened } = keyRanges(space, used);
  const order = sortOrder(space.fields, used, query.sort, {
    ordered: collection.definition.longIds !== true && query.collation === null,
    arrays: 0,
    endsWithId: false,
    listsMerged: false,
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
    ...ALONE,
  };
}

/** Everything, in the order of `_id` or backwards. */
export function scanWhole(collection: CollectionEntry, query: PlanQuery, reverse: boolean): Plan {
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
    ...ALONE,
  };
}

const MISSING: readonly unknown[] = [null];

/** The longest usable prefix of the fields: equalities and lists, then at most one range. */
function boundsOf(space: KeySpace, bounds: ReadonlyMap<string, FieldBounds>, multikey: number): SpaceBounds {
  const points: (readonly unknown[])[] = [];
  const arrayRoots = new Set<string>();
  for (const [n, field] of space.fields.entries()) {
    const condition = bounds.get(field.path);
    if (condition === undefined || isNumericPath(field.path)) break;
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
    // A missing field lies among those that hold null; of a list it is known for the documents in it only.
    if (condition.points === null && condition.absent && !isArray) {
      points.push(MISSING);
      continue;
    }
    const byPrefix = condition.prefix !== null;
    if (!byPrefix && condition.lower === null && condition.upper === null) break;
    return { points, range: { bounds: condition, byPrefix, oneSided: isArray || !sameKind(condition) } };
  }
  return { points, range: null };
}

/** Bounds of different types exclude each other; taking one side is simply enough. */
function sameKind({ lower, upper }: FieldBounds): boolean {
  return lower === null || upper === null || comparableKind(lower.value)![0] === comparableKind(upper.value)![0];
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
    const held = heldBy(condition, used.points[n] ?? null, used.range);
    for (const conjunct of query.conjuncts) {
      if (conjunct.path !== field.path) continue;
      const isHeld = held.some(
        ({ op, value }) =>
          (op === conjunct.op && value === conjunct.value) || implies({ path: '', op, value }, conjunct),
      );
      if (isHeld) covered.add(conjunct);
    }
  }
  return query.conjuncts.every(
    (conjunct) =>
      covered.has(conjunct) ||
      (Array.isArray(index?.condition) && impliesAll(index.condition as readonly Conjunct[], [conjunct])),
  );
}

/** The conditions that hold for every entry in the ranges of a field. */
function heldBy(
  { lower, upper, prefix }: FieldBounds,
  points: readonly unknown[] | null,
  range: RangeUse | null,
): Omit<Conjunct, 'path'>[] {
  if (points !== null) {
    const list: Omit<Conjunct, 'path'> = { op: 'in', value: points };
    return points.length === 1 ? [{ op: 'eq', value: points[0] }, list] : [list];
  }
  if (range === null) return [];
  if (range.byPrefix) return [{ op: 'prefix', value: prefix }];
  const held: Omit<Conjunct, 'path'>[] = [];
  if (lower !== null) held.push({ op: lower.inclusive ? 'gte' : 'gt', value: lower.value });
  if (upper !== null && !(range.oneSided && lower !== null)) {
    held.push({ op: upper.inclusive ? 'lte' : 'lt', value: upper.value });
  }
  return held;
}

const AFTER = Uint8Array.of(0xff);
const writer = new KeyWriter();

/** The entries of all cells that cover a region, in ascending order. */
function regionRanges(index: IndexEntry, region: Region): KeyRange[] {
  return coverRegion(region).map((codes) => rangeOf(index, codes));
}

/** The entries of one cell. */
function cellRange(index: IndexEntry, cell: Cell): KeyRange {
  return rangeOf(index, codesWithin(cell));
}

function rangeOf({ definition, limit }: IndexEntry, [first, last]: readonly [number, number]): KeyRange {
  const start = writer.reset(INDEX_SPACE, definition.id).component(first, false, limit).take();
  const end = writer.reset(INDEX_SPACE, definition.id).component(last, false, limit).raw(AFTER).take();
  return { start, end, shared: 0 };
}
