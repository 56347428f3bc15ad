import { type Call, command, requireNamespace } from '../command.js';
import { anything, collationOption, countOption, documentOption } from '../options.js';
import type { Doc } from '../../codec/document.js';
import { countingPlan } from '../../planner/choose-plan.js';
import type { Collation } from '../../query/collation/collation.js';
import type { Plan } from '../../planner/plan.js';
import type { Scan } from '../../planner/scans/scan.js';
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
  const plan = countingPlan(planQuery(storage, collection, query, 0));
  const view = new View(storage, 'count');
  const scan = openCount({ storage, collection, plan, query, view, most });
  leaveIfLong(pace, storage, collection, query, plan.exact ? null : plan);
  const counting: Counting = { storage, collection, plan, scan, view, most, found: 0 };
  return countOn(counting, pace) ? counting.found : countSlowly(counting, pace);
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
  // A list may have both; what format 1 stored is counted once it is converted.
  if (lists > 0 || definition.checked !== true) return null;
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
}: Pick<Counting, 'storage' | 'collection' | 'plan' | 'view' | 'most'> & { query: Query }): Scan | UnionCount {
  const open = (one: Plan): Scan => openScan(storage, collection, one, query, undefined, view);
  if (most !== Infinity || !isUnionOfEntries(plan)) return open(plan);
  return new UnionCount(storage, plan, view, (branches) => open({ ...plan, branches }));
}

interface Counting {
  readonly storage: Storage;
  readonly collection: CollectionEntry;
  readonly plan: Plan;
  readonly scan: Scan | UnionCount;
  readonly view: View;
  readonly most: number;
  found: number;
}

/** Counts until there is nothing more to count or the turn is over; false in the latter case. */
function countOn(counting: Counting, pace: Pace): boolean {
  const { plan, scan, most } = counting;
  const visit = (): boolean => {
    counting.found++;
    return false;
  };
  while (!scan.finished && counting.found < most) {
    if (plan.exact || scan instanceof UnionCount) counting.found += scan.countChunk();
    else scan.readChunk(visit);
    if (!scan.finished && pace.due(scan.lastRead)) return false;
  }
  return true;
}

async function countSlowly(counting: Counting, pace: Pace): Promise<number> {
  const { storage, collection, plan, view } = counting;
  view.hold();
  try {
    do {
      await pace.rest();
      checkStillThere(storage, collection, plan);
    } while (!countOn(counting, pace));
    return counting.found;
  } finally {
    view.release();
  }
}
