import { type Doc, isDocument } from '../../codec/document.js';
import { badValue, CODES, EngineError } from '../../errors.js';
import { choosePlan, considerPlans } from '../../planner/choose-plan.js';
import { planByShape } from '../../planner/remembered-plan.js';
import { IdSet } from '../../planner/scans/id-set.js';
import { scanWhole } from '../../planner/index-plan.js';
import type { Plan, PlanQuery } from '../../planner/plan.js';
import type { Considered } from '../../planner/plan-cost.js';
import { mergesByKeys } from '../../planner/sort-order.js';
import { EntryMerge } from '../../planner/scans/entry-merge.js';
import { PlanScan, type Scan } from '../../planner/scans/scan.js';
import { sizesOf } from '../../planner/scans/sizes.js';
import { SortedScan } from '../../planner/scans/sorted-scan.js';
import { TrialScan } from '../../planner/scans/trial-scan.js';
import { MergedScan, UnionScan } from '../../planner/scans/union-scan.js';
import type { Collation } from '../../query/collation/collation.js';
import type { ExpressionContext } from '../../query/expression.js';
import { type Alternative, compileFilter, type Filter } from '../../query/match/match.js';
import { compileSort, type Sort, type SortPart } from '../../query/sort.js';
import { equalValues } from '../../query/values/compare.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { conditionsOf, type DescribeRead } from '../../storage/long-read.js';
import type { View } from '../../storage/view.js';
import { leaveIfLarge, type SearchPace, TOO_LONG_HERE } from '../pace.js';

/** The compiled query of a command. */
export interface Query {
  readonly filter: Filter;
  /** True when every document is wanted. */
  readonly everything: boolean;
  readonly sort: Sort | null;
  /** A sort that means the order of storage, forwards or backwards. */
  readonly natural: 1 | -1 | null;
  readonly hint: unknown;
  /** By which filter and sort compare text; null: the simple one. */
  readonly collation: Collation | null;
}

/** Compiles filter, sort and hint; refuses what is malformed with MongoDB's codes. */
export function compileQuery(filter: Doc, sort: Doc = {}, hint?: unknown, environment?: ExpressionContext): Query {
  const natural = sort['$natural'];
  const keys = Object.keys(sort);
  const collation = environment?.collation ?? null;
  if (natural !== undefined && keys.length !== 1) throw badValue('$natural sort cannot be combined with other keys');
  if (natural !== undefined && Number(natural) !== 1 && Number(natural) !== -1) {
    throw badValue('$natural sort must be 1 or -1');
  }
  return {
    filter: compileFilter(filter, environment === undefined ? {} : { environment }),
    everything: Object.keys(filter).length === 0,
    sort: natural !== undefined || keys.length === 0 ? null : compileSort(sort, collation),
    natural: natural === undefined ? null : Number(natural) === 1 ? 1 : -1,
    hint,
    collation,
  };
}

/** The plan for a query on a collection as it is now. */
export function planQuery(storage: Storage, collection: CollectionEntry, query: Query, limit: number): Plan {
  let probed = false;
  const choose = (): Plan =>
    choosePlan(
      collection,
      planQueryOf(collection, query, limit),
      sizesOf(storage, collection, () => (probed = true)),
    );
  if (query.natural !== null || query.hint !== undefined || query.collation !== null) return choose();
  return planByShape(collection, query.filter, query.sort?.parts ?? NO_SORT, limit, () => ({ plan: choose(), probed }));
}

const NO_SORT: readonly SortPart[] = [];

/** All plans between which planQuery chooses, each with what it is expected to read. */
export function plansOf(storage: Storage, collection: CollectionEntry, query: Query, limit: number): Considered[] {
  return considerPlans(collection, planQueryOf(collection, query, limit), sizesOf(storage, collection));
}

/** A query as the planner takes it; 2 when its hint names no index of the collection. */
export function planQueryOf(collection: CollectionEntry, query: Query, limit: number): PlanQuery {
  return {
    conjuncts: query.filter.conjuncts,
    alternatives: [...query.filter.alternatives, ...listsOfConditions(collection, query.filter)],
    unplanned: query.filter.unplanned,
    residual: query.filter.residual,
    sort: query.sort?.parts ?? NO_SORT,
    collation: query.collation,
    limit,
    hint: query.natural === null ? findHinted(collection, query.hint) : { natural: query.natural },
  };
}

/**
 * Lists of values of fields on which partial indexes depend, as alternatives: an index of some of the documents serves
 * one of the values, and together they serve all.
 */
function listsOfConditions({ conditionFields }: CollectionEntry, { conjuncts }: Filter): Alternative[][] {
  const lists: Alternative[][] = [];
  for (const { path, op, value } of conjuncts) {
    if (op !== 'in' || !conditionFields.has(path)) continue;
    const values = value as readonly unknown[];
    if (values.length < 2 || values.length > MOST_CONDITIONS || !values.every(isPlain)) continue;
    lists.push(
      values.map((one) => ({ conjuncts: [{ path, op: 'eq', value: one }], alternatives: [], unplanned: false })),
    );
  }
  return lists;
}

const MOST_CONDITIONS = 4;

function isPlain(value: unknown): boolean {
  return typeof value === 'boolean' || typeof value === 'string' || typeof value === 'number';
}

/** The hinted index; 2 when there is none of that name or key. */
function findHinted(collection: CollectionEntry, hint: unknown): PlanQuery['hint'] {
  if (hint === undefined || hint === null) return undefined;
  if (isDocument(hint)) {
    if (Object.keys(hint).length === 0) return undefined;
    if (Object.hasOwn(hint, '$natural')) return { natural: Number(hint['$natural']) === -1 ? -1 : 1 };
  }
  if (hint === '_id_' || equalValues(hint, { _id: 1 })) return { natural: 1 };
  const index = collection.indexes.find(
    ({ definition }) => definition.name === hint || equalValues(definition.key, hint),
  );
  if (index?.definition.state !== 'ready') throw badValue('hint provided does not correspond to an existing index');
  return index;
}

/**
 * A scan of the plan that decodes the fields that the filter and `more` need; without a view it sees what is newest. It
 * has the order that the plan says; a plan that may be given up for one without that order has it all the same.
 */
export function openScan(
  storage: Storage,
  collection: CollectionEntry,
  plan: Plan,
  query: Query,
  more: ReadonlySet<string> | null = NO_FIELDS,
  view: View | null = null,
  pace: Pick<SearchPace, 'mayLeave'> | null = null,
): Scan {
  const open = (one: Plan): Scan => openPlan(storage, collection, one, query, more, view, pace);
  const { fallback } = plan;
  if (fallback === null) return open(plan);
  const idOf = (bytes: Buffer): Buffer => storage.documents.encodeIdOf(bytes);
  return new TrialScan(plan, open(plan), fallback.after, idOf, () => {
    const { sort } = query;
    if (sort === null || fallback.plan.sorted) return open(fallback.plan);
    return openSorted(storage, collection, fallback.plan, query, sort, more, view, pace, fallback.most);
  });
}

/** A scan of a plan that lacks the wanted order: reads all of it, then hands over the first `most` in that order. */
export function openSorted(
  storage: Storage,
  collection: CollectionEntry,
  plan: Plan,
  query: Query,
  sort: Sort,
  more: ReadonlySet<string> | null,
  view: View | null,
  pace: Pick<SearchPace, 'mayLeave'> | null,
  most: number,
): Scan {
  const fields = more === null ? null : new Set([...more, ...sort.fields]);
  return new SortedScan(openScan(storage, collection, plan, query, fields, view, pace), sort, most);
}

function openPlan(
  storage: Storage,
  collection: CollectionEntry,
  plan: Plan,
  query: Query,
  more: ReadonlySet<string> | null,
  view: View | null,
  pace: Pick<SearchPace, 'mayLeave'> | null,
): Scan {
  const { sort } = query;
  const merges = (plan.branches !== null || plan.merges) && sort !== null && plan.sorted;
  const branches = plan.branches ?? [plan];
  const byKeys = merges && mergesByKeys(branches, sort.parts);
  const fields = merges && !byKeys && more !== null ? new Set([...more, ...sort.fields]) : more;
  const seen = plan.repeats && !merges ? new IdSet() : null;
  const open = (one: Plan, filter: Filter | null, forgets: boolean): PlanScan => {
    const scan = new PlanScan(storage, collection, one, filter, fields, view, seen, forgets);
    scan.describe = () => describeRead(collection, query, one);
    if (pace?.mayLeave === true) scan.beforeDecoding = (bytes) => leaveIfLarge(pace, bytes);
    return scan;
  };
  const openBranch = (branch: Plan): PlanScan => open(branch, filterFor(branch, query), true);
  if (byKeys) return new EntryMerge(storage, plan, branches.map(openBranch), view);
  if (merges) {
    const each = branches.flatMap((branch) =>
      branch.merges ? branch.ranges.map((range): Plan => ({ ...branch, ranges: [range] })) : [branch],
    );
    return new MergedScan(storage, plan, sort, each.map(openBranch));
  }
  if (plan.branches === null && seen === null) return openBranch(plan);
  const scans = branches.map((branch, n) => {
    // What the last branch reads is read by no other; of an index over lists an entry may come again.
    const forgets = n === branches.length - 1 && !branch.repeats;
    return open(branch, filterFor(branch, query), forgets);
  });
  const openWhole = (): PlanScan =>
    open(scanWhole(collection, planQueryOf(collection, query, 0), false), query.filter, true);
  return new UnionScan(plan, scans, seen ?? NO_FIELDS, openWhole);
}

function describeRead({ ns }: CollectionEntry, { filter, sort }: Query, { index }: Plan): ReturnType<DescribeRead> {
  return {
    ns,
    conditions: conditionsOf(filter),
    sort: (sort?.parts ?? NO_SORT).map(({ path, dir }) => ({ path, descending: dir === -1 })),
    index: index?.definition.name ?? null,
  };
}

/** When every entry of the plan is an answer there is nothing to check. */
function filterFor(plan: Plan, query: Query): Filter | null {
  return query.everything || plan.exact ? null : query.filter;
}

const NO_FIELDS: ReadonlySet<string> = new Set();

/** Bytes of documents up to which a filter of expressions or patterns stays in this thread. */
const STAY_BYTES = 64 * 1024;
/** Documents up to which a read of everything stays in this thread. */
const STAY_DOCUMENTS = 2000;

/**
 * Throws TOO_LONG_HERE for a read that can be told to be long before it begins: its filter may take long for a single
 * document, or all of a large collection is wanted. What turns out to be long only later leaves by its pace.
 */
export function leaveIfLong(
  pace: Pick<SearchPace, 'mayLeave'>,
  { catalog }: Storage,
  collection: CollectionEntry,
  query: Query,
  wholeOf: Plan | null,
): void {
  if (!pace.mayLeave) return;
  const long =
    (query.filter.mayTakeLong && catalog.counts(collection.id).bytes > STAY_BYTES) ||
    (wholeOf !== null &&
      wholeOf.branches === null &&
      wholeOf.bounds.points.length === 0 &&
      catalog.roughDocuments(collection.id) > STAY_DOCUMENTS);
  if (long) throw TOO_LONG_HERE;
}

/**
 * To be called when a scan goes on after a turn in which others could write: 175 when its collection or an index of its
 * plan is gone.
 */
export function checkStillThere(
  storage: Storage,
  collection: CollectionEntry,
  plan: Plan,
  /** Of a command that may still be in its first turn. */
  view: View | null = null,
): void {
  if (view === null) storage.refresh();
  else view.refresh();
  const current = storage.catalog.find(collection.ns);
  if (current === collection) return;
  if (current?.id !== collection.id) {
    throw new EngineError(CODES.QueryPlanKilled, `collection dropped: ${collection.ns}`);
  }
  const plans = plan.fallback === null ? [plan] : [plan, plan.fallback.plan];
  for (const { index } of plans.flatMap((one) => one.branches ?? [one])) {
    if (index === null) continue;
    const { id, name } = index.definition;
    if (!current.indexes.some((candidate) => candidate.definition.id === id)) {
      throw new EngineError(CODES.QueryPlanKilled, `index '${name}' dropped`);
    }
  }
}
