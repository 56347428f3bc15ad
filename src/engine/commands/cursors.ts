import { type Row } from '../codec/document.js';
import { EngineError } from '../errors.js';

/** Where a cursor's documents come from. */
export interface RowSource {
  /** At least one row, at most `most`, unless there are no more. */
  next(most: number): Promise<Row[]>;
  readonly finished: boolean;
  close(): void;
}

interface OpenCursor {
  ns: string;
  source: RowSource;
  usedAt: number;
  busy: boolean;
}

/** MongoDB's own limit for cursors that nobody asks. */
const IDLE_MS = 10 * 60_000;
const FIRST_BATCH = 101;
const LARGEST_BATCH = 100_000;

/** The cursors that clients may go on with. */
export class Cursors {
  private readonly open = new Map<bigint, OpenCursor>();
  private lastId = BigInt(Math.floor(Math.random() * 2 ** 40));

  /** The first batch of `source` as the `cursor` field of a reply; what is left waits under an id. */
  async begin(ns: string, source: RowSource, batchSize: number | undefined, single = false): Promise<object> {
    let firstBatch: Row[] = [];
    try {
      // A batch size of zero only opens the cursor.
      if (batchSize !== 0 || single) firstBatch = await source.next(batchSize ?? FIRST_BATCH);
    } catch (error) {
      source.close();
      throw error;
    }
    if (source.finished || single) {
      source.close();
      return { firstBatch, id: 0n, ns };
    }
    const id = ++this.lastId;
    this.open.set(id, { ns, source, usedAt: Date.now(), busy: false });
    return { firstBatch, id, ns };
  }

  /** The next batch; 43 when there is no such cursor (any more) on that collection. */
  async more(ns: string, id: bigint, batchSize: number | undefined): Promise<object> {
    const cursor = this.open.get(id);
    if (cursor?.ns !== ns) throw new EngineError(43, `cursor id ${id} not found`);
    if (cursor.busy) throw new EngineError(12051, `cursor id ${id} is already in use`);
    cursor.busy = true;
    try {
      const nextBatch = await cursor.source.next(
        batchSize === undefined || batchSize === 0 ? LARGEST_BATCH : batchSize,
      );
      cursor.busy = false;
      cursor.usedAt = Date.now();
      if (!cursor.source.finished) return { nextBatch, id, ns };
      this.close(id);
      return { nextBatch, id: 0n, ns };
    } catch (error) {
      this.close(id);
      throw error;
    }
  }

  /** Closes a cursor; false when there was none. */
  close(id: bigint, ns?: string): boolean {
    const cursor = this.open.get(id);
    if (cursor === undefined || (ns !== undefined && cursor.ns !== ns)) return false;
    this.open.delete(id);
    cursor.source.close();
    return true;
  }

  /** Closes what nobody asked for in ten minutes. */
  closeIdle(now = Date.now()): void {
    for (const [id, cursor] of this.open) if (!cursor.busy && now - cursor.usedAt > IDLE_MS) this.close(id);
  }

  closeAll(): void {
    for (const id of [...this.open.keys()]) this.close(id);
  }

  get count(): number {
    return this.open.size;
  }
}
