import { decodeDocument } from '../../codec/decode.js';
import { type Doc, RawDocument, type Row } from '../../codec/document.js';
import { CODES, EngineError } from '../../errors.js';
import type { Plan } from '../../planner/plan.js';
import { keep, type Scan } from '../../planner/scans/scan.js';
import type { Projection } from '../../query/project.js';
import type { KeyTuple } from '../../query/sort.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { View } from '../../storage/view.js';
import type { RowSource } from './cursors.js';
import type { SearchPace } from '../pace.js';
import { checkStillThere, leaveIfLong, openScan, planQuery, type Query } from './query.js';

/** A batch of a reply stays below this, with room for the reply around it. */
const MAX_BATCH_BYTES = 16 * 1024 * 1024 - 64 * 1024;
/** Limit of a sort without an index. */
const MAX_SORT_BYTES = 100 * 1024 * 1024;

export interface RowsOptions {
  skip: number;
  /** 0: no limit. */
  limit: number;
  projection: Projection | null;
  /** The projection has a positional `$`, which needs to know what the filter matched. */
  positional: boolean;
}

interface Sorted {
  keys: KeyTuple;
  bytes: Buffer;
  order: number;
}

/** A batch that is being read. */
interface Batch {
  readonly rows: Row[];
  size: number;
  readonly wanted: number;
}

/** The rows of a find: streamed in the plan's order, or collected and sorted first when no index has the order. */
export class FindRows implements RowSource {
  finished = false;
  private readonly plan: Plan;
  private readonly scan: Scan;
  private sorted: Sorted[] | null = null;
  private sortedAt = 0;
  /** A row that did not fit into the last batch any more. */
  private pending: Row | null = null;
  private skip: number;
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
    const fields = this.plan.sorted ? undefined : query.sort?.fields;
    this.scan = openScan(storage, collection, this.plan, query, fields, this.view, fields === undefined ? null : pace);
  }

  next(most: number, signal?: AbortSignal): Promise<Row[]> | Row[] {
    if (this.started) {
      this.pace.resume(signal);
      checkStillThere(this.storage, this.collection, this.plan);
    }
    this.started = true;
    if (this.query.sort !== null && !this.plan.sorted) return this.nextSorted(most);
    const batch = this.openBatch(most);
    return this.readOn(batch) ? this.finishBatch(batch) : this.stream(batch);
  }

  close(): void {
    this.finished = true;
    this.sorted = null;
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
    const visit = (bytes: Buffer): boolean => {
      if (this.skip > 0) {
        this.skip--;
        return false;
      }
      batch.size += bytes.length;
      if (rows.length > 0 && batch.size > MAX_BATCH_BYTES) {
        this.pending = this.present(bytes);
        return true;
      }
      rows.push(this.present(bytes));
      return rows.length >= wanted;
    };
    for (;;) {
      if (rows.length >= wanted || this.scan.readChunk(visit, this.chunkFor(wanted - rows.length))) return true;
      if (this.scan.finished) return true;
      if (this.pace.due(this.scan.lastRead)) return false;
    }
  }

  /** Whoever asks for the next batch may take his time. */
  private leaveView(): void {
    if (!this.sharesView) this.view.release();
  }

  private async stream(batch: Batch): Promise<Row[]> {
    do {
      this.view.hold();
      await this.pace.rest();
      checkStillThere(this.storage, this.collection, this.plan);
    } while (!this.readOn(batch));
    return this.finishBatch(batch);
  }

  private finishBatch({ rows }: Batch): Row[] {
    this.leaveView();
    this.left -= rows.length;
    this.finished = this.left <= 0 || (this.scan.finished && this.pending === null);
    if (!this.finished) {
      this.scan.dropAhead();
      this.pace.suspend();
    }
    return rows;
  }

  /** No more entries than can be of use when every entry is an answer. */
  private chunkFor(rows: number): number | undefined {
    return this.plan.exact && rows < 512 ? rows + this.skip : undefined;
  }

  private present(bytes: Buffer): Row {
    const { projection, positional } = this.options;
    if (projection === null) return new RawDocument(keep(bytes));
    const doc = decodeDocument(bytes, 'engine', positional ? undefined : (projection.fields ?? undefined));
    return projection.apply(doc, positional ? this.query.filter.match(doc) : null);
  }

  private async nextSorted(most: number): Promise<Row[]> {
    this.sorted ??= await this.collectSorted();
    const rows = await this.takeSorted(most);
    if (!this.finished) this.pace.suspend();
    return rows;
  }

  private async collectSorted(): Promise<Sorted[]> {
    const sort = this.query.sort!;
    const keepAtMost = this.left === Infinity ? Infinity : this.options.skip + this.left;
    let found: Sorted[] = [];
    let order = 0;
    let size = 0;
    const compare = (a: Sorted, b: Sorted): number => sort.compareKeys(a.keys, b.keys) || a.order - b.order;
    let worst: Sorted | null = null;
    const visit = (bytes: Buffer, doc: Doc): boolean => {
      const candidate = { keys: sort.keysOf(doc), bytes, order: order++ };
      if (worst !== null && compare(candidate, worst) >= 0) return false;
      candidate.bytes = keep(bytes);
      size += bytes.length + 64;
      found.push(candidate);
      // With a limit only the best are kept: let twice as many gather, then cut.
      if (found.length >= keepAtMost * 2 + 64) {
        found.sort(compare);
        found = found.slice(0, keepAtMost);
        worst = found.at(-1)!;
        size = found.reduce((sum, entry) => sum + entry.bytes.length + 64, 0);
      }
      if (size > MAX_SORT_BYTES) {
        throw new EngineError(
          CODES.QueryExceededMemoryLimitNoDiskUseAllowed,
          `Sort exceeded memory limit of ${MAX_SORT_BYTES} bytes, but did not opt in to external sorting.`,
        );
      }
      return false;
    };
    while (!this.scan.finished) {
      this.scan.readChunk(visit);
      if (!this.scan.finished && this.pace.due(this.scan.lastRead)) {
        this.view.hold();
        await this.pace.rest();
        checkStillThere(this.storage, this.collection, this.plan);
      }
    }
    this.leaveView();
    found.sort(compare);
    const end = this.left === Infinity ? undefined : this.skip + this.left;
    const rows = found.slice(this.skip, end);
    this.skip = 0;
    return rows;
  }

  private async takeSorted(most: number): Promise<Row[]> {
    const rows: Row[] = [];
    const sorted = this.sorted!;
    let size = 0;
    while (this.sortedAt < sorted.length && rows.length < most) {
      const { bytes } = sorted[this.sortedAt]!;
      size += bytes.length;
      if (rows.length > 0 && size > MAX_BATCH_BYTES) break;
      rows.push(this.present(bytes));
      this.sortedAt++;
      if (this.pace.due(1)) await this.pace.rest();
    }
    this.finished = this.sortedAt >= sorted.length;
    return rows;
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
