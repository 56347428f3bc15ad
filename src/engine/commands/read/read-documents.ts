import { decodeDocument } from '../../codec/decode.js';
import type { Doc, RawDocument } from '../../codec/document.js';
import type { Budget } from '../../pipeline/budget.js';
import type { ExpressionContext } from '../../query/expression.js';
import type { GeoNear } from '../../query/geometry/geo-near.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import { type DistinctPlan, planDistinct, DistinctScan } from '../../planner/scans/distinct-scan.js';
import type { ReadingScan } from '../../planner/scans/scan.js';
import { FindRows, MAX_BATCH_BYTES } from './find-rows.js';
import { leaveIfLarge, type SearchPace, STAY_DOCUMENT_BYTES } from '../pace.js';
import { readNearest } from './read-nearest.js';
import { checkStillThere, compileQuery, leaveIfLong, openScan, planQuery, planQueryOf, type Query } from './query.js';

/** The demands of a pipeline on a collection. */
export interface Wanted {
  filter: Doc | null;
  sort: Doc | null;
  skip: number;
  /** Null: all. */
  limit: number | null;
  /** Instead of filter and sort: nearest first. */
  near?: GeoNear | null;
  /** Top-level fields that are needed; null = all. */
  fields: ReadonlySet<string> | null;
  hint?: unknown;
  /** One document of each value of this path is enough, which is the same for missing and null. */
  distinct?: string | null;
}

type Leaving = Pick<SearchPace, 'mayLeave'>;

const STAYS: Leaving = { mayLeave: false };

/** Batch size, in documents. */
const BATCH = 128;
/** Batch size, in bytes of documents. */
const CHUNK_BYTES = 4 * 1024 * 1024;

/**
 * The documents of a collection as `view` has them, decoded as far as needed, in batches; nothing for a collection that
 * does not exist.
 */
export async function* readDocuments(
  storage: Storage,
  ns: string,
  wanted: Wanted,
  budget: Budget,
  view: View,
  environment?: ExpressionContext,
  /** Of a command that may go on in another thread, for its own collection. */
  leaving: Leaving = STAYS,
): AsyncGenerator<Doc[]> {
  if (wanted.limit === 0) return;
  const query = compileQuery(wanted.filter ?? {}, wanted.sort ?? {}, wanted.hint, environment);
  view.refresh();
  const collection = view.find(ns);
  if (collection === null) return;
  if (wanted.near != null) {
    yield* readNearest(storage, collection, wanted.near, wanted.fields, budget, view, environment);
    return;
  }
  const limit = wanted.limit ?? 0;
  const plan = view.read(() => planQuery(storage, collection, query, limit === 0 ? 0 : limit + wanted.skip));
  if (query.sort !== null && (!plan.sorted || plan.fallback !== null)) {
    yield* readSorted(storage, collection, query, wanted, budget, view, leaving);
    return;
  }
  const distinct = wanted.distinct == null ? null : planGroup(collection, query, wanted.distinct);
  if (distinct === null) leaveIfLong(leaving, storage, collection, query, limit === 0 ? plan : null);
  const scan: ReadingScan =
    distinct === null
      ? openScan(storage, collection, plan, query, wanted.fields, view, leaving)
      : new DistinctScan(storage, collection, distinct, view, true);
  const chunkBytes = leaving.mayLeave ? STAY_DOCUMENT_BYTES : CHUNK_BYTES;
  let skip = wanted.skip;
  let left = wanted.limit ?? Infinity;
  while (!scan.finished && left > 0) {
    let docs: Doc[] = [];
    let size = 0;
    scan.readChunk((bytes, doc) => {
      if (skip > 0) {
        skip--;
        return false;
      }
      docs.push(doc);
      size += bytes.length;
      return --left <= 0 || size >= chunkBytes;
    });
    while (docs.length > 0) {
      yield docs.slice(0, BATCH);
      docs = docs.slice(BATCH);
    }
    if (isDue(budget, scan.lastRead)) await budget.pause();
    if (!scan.finished && left > 0) checkStillThere(storage, collection, scan.plan, view);
  }
}

function planGroup(collection: CollectionEntry, query: Query, path: string): DistinctPlan | null {
  return query.collation === null ? planDistinct(collection, planQueryOf(collection, query, 0), path) : null;
}

async function* readSorted(
  storage: Storage,
  collection: CollectionEntry,
  query: Query,
  { skip, limit, fields }: Wanted,
  budget: Budget,
  view: View,
  leaving: Leaving,
): AsyncGenerator<Doc[]> {
  const options = { skip, limit: limit ?? 0, batchBytes: MAX_BATCH_BYTES, projection: null, positional: false };
  const rows = new FindRows(storage, collection, query, options, paceOf(budget, leaving), view);
  while (!rows.finished) {
    const batch = await rows.next(BATCH);
    yield batch.map((row) => {
      const { bytes } = row as RawDocument;
      leaveIfLarge(leaving, bytes.length);
      return decodeDocument(bytes, 'engine', fields ?? undefined);
    });
    if (budget.tick(batch.length)) await budget.pause();
  }
}

/** A chunk may be over early because its documents took long: look at the clock, however few they are. */
function isDue(budget: Budget, documents: number): boolean {
  budget.check();
  return budget.tick(documents);
}

/** The search's pace is that of the pipeline, whose clock stands still by itself while nobody asks for rows. */
function paceOf(budget: Budget, leaving: Leaving): SearchPace {
  return {
    due: (documents) => isDue(budget, documents),
    rest: () => budget.pause(),
    get mayLeave() {
      return leaving.mayLeave;
    },
    resume: () => undefined,
    suspend: () => undefined,
  };
}
