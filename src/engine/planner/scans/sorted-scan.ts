import { CODES, EngineError } from '../../errors.js';
import type { KeyTuple, Sort } from '../../query/sort.js';
import type { Doc } from '../../codec/document.js';
import type { Plan } from '../plan.js';
import { keep, type Scan, type VisitRow } from './scan.js';

/** Limit of a sort without an index. */
const MAX_SORT_BYTES = 100 * 1024 * 1024;
/** What a document takes beside its bytes. */
const OVERHEAD_BYTES = 64;
/** Documents handed over between two looks at the clock. */
const CHUNK = 128;
const NOTHING: Doc = {};

interface Sorted {
  readonly keys: KeyTuple;
  bytes: Buffer;
  readonly order: number;
}

/**
 * Reads all of a plan that is not in the wanted order, and then hands over its documents in that order: the first
 * `most`, of which it holds little more. They are not decoded. 292 when what it holds is too much.
 */
export class SortedScan implements Scan {
  lastRead = 0;
  private found: Sorted[] = [];
  private collected = false;
  private at = 0;
  private met = 0;
  private size = 0;
  /** Later ones than this are not among the first. */
  private worst: Sorted | null = null;

  constructor(
    private readonly scan: Scan,
    private readonly sort: Sort,
    private readonly most: number,
  ) {}

  get plan(): Plan {
    return this.scan.plan;
  }

  get finished(): boolean {
    return this.collected && this.at >= this.found.length;
  }

  get keysExamined(): number {
    return this.scan.keysExamined;
  }

  get documentsExamined(): number {
    return this.scan.documentsExamined;
  }

  readChunk(visit: VisitRow): boolean {
    if (!this.collected) {
      this.collect();
      if (!this.collected) return false;
    }
    const from = this.at;
    let stopped = false;
    while (!stopped && this.at < this.found.length && this.at - from < CHUNK) {
      stopped = visit(this.found[this.at++]!.bytes, NOTHING);
    }
    this.lastRead = this.at - from;
    return stopped;
  }

  dropAhead(): void {
    // What was collected is of one moment.
  }

  private collect(): void {
    const { scan, sort } = this;
    scan.readChunk((bytes, doc) => {
      const candidate = { keys: sort.keysOf(doc), bytes, order: this.met++ };
      if (this.worst !== null && this.compare(candidate, this.worst) >= 0) return false;
      candidate.bytes = keep(bytes);
      this.add(candidate);
      return false;
    });
    this.lastRead = scan.lastRead;
    if (!scan.finished) return;
    this.collected = true;
    this.cut();
  }

  private add(candidate: Sorted): void {
    const { found } = this;
    this.size += candidate.bytes.length + OVERHEAD_BYTES;
    found.push(candidate);
    // Only the first are kept: let twice as many gather, then cut.
    if (found.length >= this.most * 2 + 64) {
      this.cut();
      this.worst = this.found.at(-1)!;
    }
    if (this.size > MAX_SORT_BYTES) {
      throw new EngineError(
        CODES.QueryExceededMemoryLimitNoDiskUseAllowed,
        `Sort exceeded memory limit of ${MAX_SORT_BYTES} bytes, but did not opt in to external sorting.`,
      );
    }
  }

  private cut(): void {
    this.found.sort((a, b) => this.compare(a, b));
    if (this.found.length <= this.most) return;
    this.found = this.found.slice(0, this.most);
    this.size = this.found.reduce((sum, { bytes }) => sum + bytes.length + OVERHEAD_BYTES, 0);
  }

  private compare(a: Sorted, b: Sorted): number {
    return this.sort.compareKeys(a.keys, b.keys) || a.order - b.order;
  }
}
