import { type Call, command, requireNamespace } from '../command.js';
import { anything, collationOption, countOption, documentOption } from '../options.js';
import type { Doc } from '../../codec/document.js';
import type { Plan } from '../../planner/plan.js';
import type { Scan } from '../../planner/scan.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { View } from '../../storage/view.js';
import { openPace, type Pace, TOO_LONG_HERE } from '../pace.js';
import { checkStillThere, compileQuery, leaveIfLong, openScan, planQuery, type Query } from './query.js';

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

/** Collections of this size are counted in one piece: at most about 30 ms. */
const COUNTED_AT_ONCE = 1_000_000;
/**
 * Larger collections are counted in another thread, if there is one: what is counted in one piece keeps this one for up
 * to a millisecond.
 */
const COUNTED_HERE = 50_000;

/** Counts what matches, up to about `most`: from the counter, from an index alone, or from the documents. */
export function countMatching(
  call: Call,
  ns: string,
  counted: { query: Doc; hint: unknown; maxTimeMS: number | undefined },
  most: number,
): Promise<number> | number {
  const { storage } = call.core;
  const query = compileQuery(counted.query, {}, counted.hint);
  const pace = openPace(call, counted.maxTimeMS);
  storage.refresh();
  const collection = storage.catalog.find(ns);
  if (collection === null) return 0;
  if (query.hint === undefined) {
    const kept = keptCount(storage, collection, query);
    if (kept !== null) return kept;
  }
  const plan = planQuery(storage, collection, query, 0);
  const view = new View(storage, 'count');
  const scan = openScan(storage, collection, plan, query, undefined, view);
  leaveIfLong(pace, storage, collection, query, plan.exact ? null : plan);
  const documents = storage.catalog.roughDocuments(collection.id);
  const atOnce = documents <= COUNTED_AT_ONCE;
  if (pace.mayLeave && plan.exact && !plan.single && documents > COUNTED_HERE) throw TOO_LONG_HERE;
  const counting: Counting = { storage, collection, plan, scan, view, most, atOnce, found: 0 };
  return countOn(counting, pace) ? counting.found : countSlowly(counting, pace);
}

/** What the kept counts say about a filter: for all documents, and for `true`, `false` or both in the counted field. */
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

interface Counting {
  readonly storage: Storage;
  readonly collection: CollectionEntry;
  readonly plan: Plan;
  readonly scan: Scan;
  readonly view: View;
  readonly most: number;
  readonly atOnce: boolean;
  found: number;
}

/** Counts until there is nothing more to count or the turn is over; false in the latter case. */
function countOn(counting: Counting, pace: Pace): boolean {
  const { plan, scan, most, atOnce } = counting;
  const visit = (): boolean => {
    counting.found++;
    return false;
  };
  while (!scan.finished && counting.found < most) {
    if (plan.exact) counting.found += scan.countChunk(atOnce);
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
