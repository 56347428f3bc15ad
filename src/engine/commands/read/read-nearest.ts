import type { Doc } from '../../codec/document.js';
import { CODES, EngineError } from '../../errors.js';
import type { Budget } from '../../pipeline/budget.js';
import { Heap } from '../../planner/scans/heap.js';
import { IdSet } from '../../planner/scans/id-set.js';
import { conjunctsFor, planCell } from '../../planner/index-plan.js';
import { impliesAll } from '../../planner/partial.js';
import { countEntries, PlanScan } from '../../planner/scans/scan.js';
import type { ExpressionContext } from '../../query/expression.js';
import { type Cell, halvesOf, leastAngle, MAX_DEPTH, mostAngle, WORLD } from '../../query/geometry/cell.js';
import { type GeoNear, nearestPlace, type NearPlace } from '../../query/geometry/geo-near.js';
import type { Conjunct } from '../../query/match/match.js';
import type { CollectionEntry, IndexEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import { checkStillThere, compileQuery, type Query } from './query.js';

/** Most entries of a cell that is read; a fuller one is divided. */
const FEW_ENTRIES = 32;

/** A cell, the rest of one, or a document that was read, waiting for its turn by the least angle it can be at. */
type Ahead = { cell: Cell; scan: PlanScan | null } | { doc: Doc; found: NearPlace; bytes: number };

interface Waiting {
  readonly angle: number;
  readonly number: number;
  readonly item: Ahead;
}

/**
 * The documents of a `$geoNear`, nearest first. Cells are opened in the order of their least distance, so what is near
 * comes before anything farther has been read. 27 and 291 when no index of places serves it.
 */
export async function* readNearest(
  storage: Storage,
  collection: CollectionEntry,
  near: GeoNear,
  fields: ReadonlySet<string> | null,
  budget: Budget,
  view: View,
  environment?: ExpressionContext,
  /** Counts the entries and documents that are looked at. */
  looked = { keys: 0, documents: 0 },
): AsyncGenerator<Doc[]> {
  const query = compileQuery(near.query, {}, undefined, environment);
  const index = chooseNearestIndex(collection, near, query);
  const { parts } = index.fields[0]!;
  const decoded = fields === null ? null : new Set([...fields, parts[0]!]);
  const seen = index.definition.multikey === 0 ? null : new IdSet();
  // Of two at the same angle the one that was found first.
  const ahead = new Heap<Waiting>((a, b) => a.angle < b.angle || (a.angle === b.angle && a.number < b.number));
  let added = 0;
  const wait = (angle: number, item: Ahead): void => ahead.add({ angle, number: added++, item });
  let held = 0;
  const hold = (bytes: number): void => {
    held += bytes;
    budget.charge(bytes);
  };
  const visit = (stored: Buffer, doc: Doc): boolean => {
    const found = nearestPlace(doc, parts, near);
    if (found === null) return false;
    hold(stored.length);
    wait(found.angle, { doc, found, bytes: stored.length });
    return false;
  };
  wait(0, { cell: WORLD, scan: null });
  let nearest: Doc[] = [];
  try {
    for (let next = ahead.take(); next !== undefined; next = ahead.take()) {
      const { item } = next;
      if ('doc' in item) {
        hold(-item.bytes);
        nearest.push(near.present(item.doc, item.found));
        continue;
      }
      // Who has enough of what is known already does not ask for more.
      if (nearest.length > 0) yield nearest;
      nearest = [];
      let read = 1;
      const plan = planCell(index, item.cell);
      const entries = item.scan === null ? view.read(() => countEntries(storage, plan, FEW_ENTRIES + 1)) : FEW_ENTRIES;
      if (entries > FEW_ENTRIES && item.cell.depth < MAX_DEPTH) {
        for (const cell of halvesOf(item.cell).flatMap(halvesOf)) {
          const least = leastAngle(near.from, cell);
          if (least > near.most || mostAngle(near.from, cell) < near.least) continue;
          wait(least, { cell, scan: null });
        }
      } else if (entries > 0) {
        const filter = query.everything ? null : query.filter;
        const scan = item.scan ?? new PlanScan(storage, collection, plan, filter, decoded, view, seen);
        const examined = scan.documentsExamined;
        scan.readChunk(visit);
        looked.keys += scan.lastRead;
        looked.documents += scan.documentsExamined - examined;
        read = scan.lastRead;
        if (!scan.finished) wait(next.angle, { cell: item.cell, scan });
      }
      budget.check();
      if (!budget.tick(Math.max(read, 1))) continue;
      await budget.pause();
      checkStillThere(storage, collection, plan, view);
    }
    if (nearest.length > 0) yield nearest;
  } finally {
    budget.release(held);
  }
}

/** The index that serves a `$geoNear`; 27 and 291 when there is none. */
export function chooseNearestIndex(
  collection: CollectionEntry,
  { key }: GeoNear,
  { filter, collation }: Query,
): IndexEntry {
  const usable = collection.indexes.filter(
    (index) =>
      index.isGeo &&
      index.definition.state === 'ready' &&
      !index.definition.hidden &&
      holdsAll(index, conjunctsFor(index.collation, { conjuncts: filter.conjuncts, collation })),
  );
  const [index, another] = usable.filter(({ fields }) => key === null || fields[0]!.path === key);
  if (index === undefined && key !== null) {
    throw new EngineError(CODES.NoQueryExecutionPlans, 'unable to find index for $geoNear query');
  }
  if (index === undefined) {
    throw new EngineError(CODES.IndexNotFound, '$geoNear requires a 2d or 2dsphere index, but none were found');
  }
  if (another !== undefined && key === null) {
    throw new EngineError(
      CODES.IndexNotFound,
      'There is more than one 2dsphere index; unsure which to use for $geoNear',
    );
  }
  return index;
}

function holdsAll({ condition }: IndexEntry, conjuncts: readonly Conjunct[]): boolean {
  return condition === null || (condition !== 'unknown' && impliesAll(conjuncts, condition));
}
