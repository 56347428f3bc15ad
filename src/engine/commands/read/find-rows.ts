import { decodeDocument } from '../../codec/decode.js';
import { encodeDocument } from '../../codec/encode.js';
import { RawDocument, type Row } from '../../codec/document.js';
import type { Plan } from '../../planner/plan.js';
import { EntrySkip, skipsEntries } from '../../planner/scans/entry-skip.js';
import { keep, MAX_CHUNK_BYTES, PlanScan, type Scan } from '../../planner/scans/scan.js';
import type { Projection } from '../../query/project.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { View } from '../../storage/view.js';
import type { RowSource } from './cursors.js';
import type { SearchPace } from '../pace.js';
import { checkStillThere, leaveIfLong, openScan, openSorted, planQuery, type Query } from './query.js';

/** A batch of a reply stays below this, with room for the reply around it. */
export const MAX_BATCH_BYTES = 16 * 1024 * 1024 - 64 * 1024;

export interface RowsOptions {
  skip: number;
  /** 0: no limit. */
  limit: number;
  /** A batch ends before it is larger, but for one row that alone is. */
  batchBytes: number;
  projection: Projection | null;
  /** The projection has a positional `$`, which needs to know what the filter matched. */
  positional: boolean;
}

/** A batch that is being read. */
interface Batch {
  readonly rows: Row[];
  size: number;
  readonly wanted: number;
}

/** The rows of a find, in the wanted order. */
export class FindRows implements RowSource {
  finished = false;
  private readonly plan: Plan;
  private readonly scan: Scan;
  /** A row that did not fit into the last batch any more. */
  private pending: Row | null = null;
  private skip: number;
  /** Leaves out what is to be skipped by counting entries, where that can be done; null when it is done. */
  private skipping: { readonly entries: EntrySkip; readonly scan: PlanScan } | null = null;
  private left: number;
  private started = false;
  private readonly view: View;
  private readonly sharesView: boolean;

  constructor(
    private readonly storage: Storage,
    private readonly collection: CollectionEntry,
    private readonly query: Query,
    private readonly options: RowsOptions,
    private readonly pace: SearchPace,
    /** The view of the command that these rows are a part of; without one, each batch is of one moment. */
    shared: View | null = null,
  ) {
    this.view = shared ?? new View(storage, 'find');
    this.sharesView = shared !== null;
    const { skip, limit } = options;
    this.skip = skip;
    this.left = limit === 0 ? Infinity : limit;
    this.plan = this.view.read(() => planQuery(storage, collection, query, limit === 0 ? 0 : skip + limit));
    leaveIfLong(pace, storage, collection, query, limit === 0 ? this.plan : null);
    const { plan, view } = this;
    const { sort } = query;
    const unsorted = sort !== null && !plan.sorted;
    const most = limit === 0 ? Infinity : skip + limit;
    const none: ReadonlySet<string> = new Set();
    this.scan = unsorted
      ? openSorted(storage, collection, plan, query, sort, none, view, pace, most)
      : openScan(storage, collection, plan, query, none, view, plan.fallback === null ? null : pace);
    const { scan } = this;
    if (scan instanceof PlanScan && skipsEntries(plan, skip)) {
      this.skipping = { entries: new EntrySkip(storage, plan, view, skip), scan };
    }
  }

  next(most: number, signal?: AbortSignal): Promise<Row[]> | Row[] {
    if (this.started) {
      this.pace.resume(signal);
      checkStillThere(this.storage, this.collection, this.plan, this.view);
    }
    this.started = true;
    const batch = this.openBatch(most);
    return this.readOn(batch) ? this.finishBatch(batch) : this.stream(batch);
  }

  /** All rows, where they fit into one batch that is read before the turn is over; null otherwise. */
  readNow(): Row[] | null {
    const batch = this.openBatch(Infinity);
    const rows = this.readOn(batch) ? this.finishBatch(batch) : null;
    const isWhole = this.finished;
    this.close();
    return isWhole ? rows : null;
  }

  close(): void {
    this.finished = true;
    this.leaveView();
  }

  private openBatch(most: number): Batch {
    const batch: Batch = { rows: [], size: 0, wanted: Math.min(most, this.left) };
    if (this.pending !== null) {
      batch.rows.push(this.pending);
      this.pending = null;
    }
    return batch;
  }

  /** Reads until the batch is full or the turn is over; true when nothing is missing any more. */
  private readOn(batch: Batch): boolean {
    const { rows, wanted } = batch;
    if (!this.skipEntries()) return false;
    let read = 0;
    const visit = (bytes: Buffer): boolean => {
      if (this.skip > 0) {
        this.skip--;
        return false;
      }
      read += bytes.length;
      const row = this.present(bytes);
      batch.size += row instanceof RawDocument ? row.bytes.length : bytes.length;
      if (rows.length > 0 && batch.size > this.options.batchBytes) {
        this.pending = row;
        return true;
      }
      rows.push(row);
      return rows.length >= wanted;
    };
    for (;;) {
      if (rows.length >= wanted || this.scan.readChunk(visit, this.chunkFor(wanted - rows.length))) return true;
      if (this.scan.finished) return true;
      // The requests of one moment may all ask for large documents.
      if (read > MAX_CHUNK_BYTES || this.pace.due(this.scan.lastRead)) return false;
    }
  }

  /** True when nothing is left to be skipped by counting; false when the turn is over. */
  private skipEntries(): boolean {
    while (this.skipping !== null) {
      const { entries, scan } = this.skipping;
      const place = entries.readChunk();
      if (place === null) {
        if (this.pace.due(entries.pages)) return false;
      } else {
        scan.goTo(place);
        this.skip = 0;
        this.skipping = null;
      }
    }
    return true;
  }

  /** The client may take its time to ask for the next batch. */
  private leaveView(): void {
    if (!this.sharesView) this.view.release();
  }

  private async stream(batch: Batch): Promise<Row[]> {
    do {
      this.view.hold();
      await this.pace.rest();
      checkStillThere(this.storage, this.collection, this.plan, this.view);
    } while (!this.readOn(batch));
    return this.finishBatch(batch);
  }

  private finishBatch({ rows }: Batch): Row[] {
    this.left -= rows.length;
    this.finished = this.left <= 0 || (this.scan.finished && this.pending === null);
    if (!this.finished) {
      this.scan.dropAhead();
      this.pace.suspend();
    }
    this.leaveView();
    return rows;
  }

  /** No more entries than can be of use when every entry is an answer. */
  private chunkFor(rows: number): number | undefined {
    return this.plan.exact && rows < 512 ? rows + this.skip : undefined;
  }

  private present(bytes: Buffer): Row {
    const { projection, positional, batchBytes } = this.options;
    if (projection === null) return new RawDocument(keep(bytes));
    const doc = decodeDocument(bytes, 'engine', positional ? undefined : (projection.fields ?? undefined));
    const shown = projection.apply(doc, positional ? this.query.filter.match(doc) : null);
    // Who bounds batches wants to know what is left of a document.
    return batchBytes < MAX_BATCH_BYTES ? new RawDocument(encodeDocument(shown)) : shown;
  }
}

/** The rows of a collection that does not exist. */
export const NO_ROWS: RowSource = {
  finished: true,
  next: () => [],
  close() {
    // Nothing is held.
  },
};
