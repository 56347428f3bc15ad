import type { Row } from '../../codec/document.js';
import { CODES, EngineError } from '../../errors.js';

/** Where a cursor's documents come from. */
export interface RowSource {
  /**
   * At least one row, at most `most`, unless there are no more; a promise when others were let in between. `signal`
   * says when the client of this request is gone.
   */
  next(most: number, signal?: AbortSignal): Promise<Row[]> | Row[];
  readonly finished: boolean;
  close(): void;
}

/** The `cursor` field of the reply that opens a cursor; an id of zero says that there is nothing more. */
export interface CursorReply {
  firstBatch: Row[];
  id: bigint;
  ns: string;
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

  /**
   * The first batch of `source` as the `cursor` field of a reply, at once when the source has it at once; what is left
   * waits under an id.
   */
  begin(
    ns: string,
    source: RowSource,
    batchSize: number | undefined,
    single = false,
  ): Promise<CursorReply> | CursorReply {
    try {
      // A batch size of zero only opens the cursor.
      const rows = batchSize !== 0 || single ? source.next(batchSize ?? FIRST_BATCH) : [];
      if (rows instanceof Promise) return this.beginLater(ns, source, rows, single);
      return this.present(ns, source, rows, single);
    } catch (error) {
      source.close();
      throw error;
    }
  }

  private async beginLater(ns: string, source: RowSource, rows: Promise<Row[]>, single: boolean): Promise<CursorReply> {
    try {
      return this.present(ns, source, await rows, single);
    } catch (error) {
      source.close();
      throw error;
    }
  }

  private present(ns: string, source: RowSource, firstBatch: Row[], single: boolean): CursorReply {
    if (source.finished || single) {
      source.close();
      return { firstBatch, id: 0n, ns };
    }
    const id = ++this.lastId;
    this.open.set(id, { ns, source, usedAt: performance.now(), busy: false });
    return { firstBatch, id, ns };
  }

  /** The next batch; 43 when there is no such cursor (any more) on that collection. */
  async more(ns: string, id: bigint, batchSize: number | undefined, signal?: AbortSignal): Promise<object> {
    const cursor = this.open.get(id);
    if (cursor?.ns !== ns) throw new EngineError(CODES.CursorNotFound, `cursor id ${id} not found`);
    if (cursor.busy) throw new EngineError(CODES.CursorInUse, `cursor id ${id} is already in use`);
    cursor.busy = true;
    try {
      const nextBatch = await cursor.source.next(
        batchSize === undefined || batchSize === 0 ? LARGEST_BATCH : batchSize,
        signal,
      );
      cursor.busy = false;
      cursor.usedAt = performance.now();
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
  closeIdle(): void {
    const now = performance.now();
    for (const [id, cursor] of this.open) if (!cursor.busy && now - cursor.usedAt > IDLE_MS) this.close(id);
  }

  closeAll(): void {
    for (const id of [...this.open.keys()]) this.close(id);
  }

  get count(): number {
    return this.open.size;
  }
}
