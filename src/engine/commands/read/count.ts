import { type Call, command, requireNamespace } from '../command.js';
import { anything, collationOption, countOption, documentOption } from '../options.js';
import type { Doc } from '../../codec/document.js';
import { countingPlan } from '../../planner/choose-plan.js';
import type { Collation } from '../../query/collation/collation.js';
import { isBounded, type Plan } from '../../planner/plan.js';
import { sizesOf } from '../../planner/scans/sizes.js';
import { readNegation } from './negation.js';
import { countNext, type Scan } from '../../planner/scans/scan.js';
import { isUnionOfEntries, UnionCount } from '../../planner/scans/union-count.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { View } from '../../storage/view.js';
import { openPace, type Pace } from '../pace.js';
import { checkStillThere, compileQuery, leaveIfLong, openScan, planQuery, type Query } from './query.js';
import { readVariables } from './variables.js';

export const countCommand = command({
  options: {
    query: documentOption,
    limit: countOption(0),
    skip: countOption(0),
    hint: anything,
    collation: collationOption,
    maxTimeMS: countOption(undefined),
  },
  leaves: true,
  run(call, options, target) {
    const { skip, limit } = options;
    const most = limit === 0 ? Infinity : skip + limit;
    const found = countMatching(call, requireNamespace(call, target), options, most);
    const present = (documents: number): Doc => ({ n: Math.max(0, Math.min(documents, most) - skip) });
    return found instanceof Promise ? found.then(present) : present(found);
  },
});

/** Counts what matches, up to about `most`: from the counter, from an index alone, or from the documents. */
export function countMatching(
  call: Call,
  ns: string,
  counted: { query: Doc; hint: unknown; collation: Collation | null; maxTimeMS: number | undefined },
  most: number,
): Promise<number> | number {
  const { storage } = call.core;
  const query = compileQuery(counted.query, {}, counted.hint, readVariables(undefined, counted.collation));
  const pace = openPace(call, counted.maxTimeMS);
  storage.refresh();
  const collection = storage.catalog.find(ns);
  if (collection === null) return 0;
  if (query.hint === undefined) {
    const kept = keptCount(storage, collection, query);
    if (kept !== null) return kept;
  }
  const view = new View(storage, 'count');
  const countings = openCounts(storage, collection, query, counted, view, most, pace);
  return countOn(countings, pace) ? difference(countings) : countSlowly(storage, collection, countings, view, pace);
}

/** How many documents a query without a sort finds; undefined when the turn is too short for that. */
export function countNow(
  storage: Storage,
  collection: CollectionEntry,
  query: Query,
  filter: Doc,
  pace: Pace,
): number | undefined {
  const kept = keptCount(storage, collection, query);
  if (kept !== null) return kept;
  const counted = { query: filter, collation: null };
  const countings = openCounts(storage, collection, query, counted, new View(storage, 'count'), Infinity, pace);
  return countOn(countings, pace) ? difference(countings) : undefined;
}

/** The first less the second, if there is one. */
function difference([all, without]: readonly Counting[]): number {
  return Math.max(0, all!.found - (without?.found ?? 0));
}

/**
 * What is to be counted: the query; or, where that reads less, everything that it would find without a negated
 * condition, and what that condition leaves out.
 */
function openCounts(
  storage: Storage,
  collection: CollectionEntry,
  query: Query,
  { query: filter, collation }: { query: Doc; collation: Collation | null },
  view: View,
  most: number,
  pace: Pace,
): Counting[] {
  const open = (one: Query, plan: Plan): Counting => {
    const kept = keptCount(storage, collection, one);
    if (kept !== null) return { plan, scan: null, most, found: kept };
    leaveIfLong(pace, storage, collection, query, plan.exact ? null : plan);
    return { plan, scan: openCount({ storage, collection, plan, query: one, view, most }), most, found: 0 };
  };
  const planOf = (one: Query): Plan => countingPlan(planQuery(storage, collection, one, 0));
  const plan = planOf(query);
  const negation = plan.exact || most !== Infinity || query.hint !== undefined ? null : readNegation(filter);
  if (negation !== null) {
    const environment = readVariables(undefined, collation);
    const all = compileQuery(negation.all, {}, undefined, environment);
    const without = compileQuery(negation.without, {}, undefined, environment);
    const [allPlan, withoutPlan] = [planOf(all), planOf(without)];
    const allByCounts = allPlan.exact || keptCount(storage, collection, all) !== null;
    if (allByCounts && (withoutPlan.exact || readsFew(storage, collection, withoutPlan))) {
      return [open(all, allPlan), open(without, withoutPlan)];
    }
  }
  return [open(query, plan)];
}

/** True when a plan reads so few documents that it is worth a way round. */
function readsFew(storage: Storage, collection: CollectionEntry, plan: Plan): boolean {
  if (plan.index === null || !isBounded(plan)) return false;
  const { documents } = storage.catalog.counts(collection.id);
  return sizesOf(storage, collection).entriesOf(plan) * 3 < documents;
}

/** The kept count for a filter: for all documents, and for `true`, `false` or both in the counted field. */
function keptCount({ catalog }: Storage, { id, definition }: CollectionEntry, query: Query): number | null {
  if (query.everything) return catalog.counts(id).documents;
  const { conjuncts, residual } = query.filter;
  const [conjunct] = conjuncts;
  if (residual || conjuncts.length !== 1 || conjunct!.path !== definition.countBy) return null;
  const { op, value } = conjunct!;
  const wanted: unknown[] | null = op === 'eq' ? [value] : op === 'in' && Array.isArray(value) ? value : null;
  if (wanted?.every((one) => typeof one === 'boolean') !== true) return null;
  const { yes, no, lists } = catalog.counts(id);
  // A list may have both.
  if (lists > 0) return null;
  return (wanted.includes(true) ? yes : 0) + (wanted.includes(false) ? no : 0);
}

/** Opens the count of a plan; a union is counted from its branches where everything is wanted. */
function openCount({
  storage,
  collection,
  plan,
  query,
  view,
  most,
}: {
  storage: Storage;
  collection: CollectionEntry;
  plan: Plan;
  query: Query;
  view: View;
  most: number;
}): Scan | UnionCount {
  const open = (one: Plan): Scan => openScan(storage, collection, one, query, undefined, view);
  if (most !== Infinity || !isUnionOfEntries(plan)) return open(plan);
  return new UnionCount(storage, plan, view, (branches) => open({ ...plan, branches }));
}

interface Counting {
  readonly plan: Plan;
  /** Null when it is known already. */
  readonly scan: Scan | UnionCount | null;
  readonly most: number;
  found: number;
}

/** Counts until there is nothing more to count or the turn is over; false in the latter case. */
function countOn(countings: readonly Counting[], pace: Pace): boolean {
  for (const counting of countings) {
    const { plan, scan, most } = counting;
    const visit = (): boolean => {
      counting.found++;
      return false;
    };
    while (scan !== null && !scan.finished && counting.found < most) {
      if (scan instanceof UnionCount) counting.found += scan.countChunk();
      else if (plan.exact) counting.found += countNext(scan);
      else scan.readChunk(visit);
      if (!scan.finished && pace.due(scan.lastRead)) return false;
    }
  }
  return true;
}

async function countSlowly(
  storage: Storage,
  collection: CollectionEntry,
  countings: readonly Counting[],
  view: View,
  pace: Pace,
): Promise<number> {
  view.hold();
  try {
    do {
      await pace.rest();
      for (const { plan } of countings) checkStillThere(storage, collection, plan);
    } while (!countOn(countings, pace));
    return difference(countings);
  } finally {
    view.release();
  }
}
