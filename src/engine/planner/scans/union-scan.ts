import type { Doc } from '../../codec/document.js';
import { CODES, EngineError } from '../../errors.js';
import type { KeyTuple, Sort } from '../../query/sort.js';
import type { Storage } from '../../storage/storage.js';
import type { IdSet } from './id-set.js';
import type { Plan } from '../plan.js';
import { keep, type PlanScan, type ScanPosition, type Scan, type VisitRow } from './scan.js';
import { type MergeSide, SideHeap } from './heap.js';

/**
 * Reads the branches of a plan one after the other; they share what they have seen. When that has become too much to be
 * remembered, everything is read instead, once, leaving out what has been handed over.
 */
export class UnionScan implements Scan {
  /** Documents remembered at most, and a chunk more, in about 50 MB; tests lower it. */
  static maxSeen = 500_000;
  lastRead = 0;
  private at = 0;
  private scans: readonly PlanScan[];
  private turned = false;

  constructor(
    readonly plan: Plan,
    scans: readonly PlanScan[],
    private readonly seen: Pick<IdSet, 'size'>,
    /** A scan of all documents that hands over those that the filter accepts and that have not been seen. */
    private readonly openWhole: () => PlanScan,
  ) {
    this.scans = scans;
  }

  get finished(): boolean {
    return this.at >= this.scans.length;
  }

  get keysExamined(): number {
    return sumOf(this.scans, ({ keysExamined }) => keysExamined);
  }

  get documentsExamined(): number {
    return sumOf(this.scans, ({ documentsExamined }) => documentsExamined);
  }

  readChunk(visit: VisitRow, most?: number): boolean {
    return this.step((scan) => scan.readChunk(visit, most));
  }

  countChunk(): number {
    return this.step((scan) => scan.countUnseen(this.turned));
  }

  dropAhead(): void {
    // Nothing is read ahead.
  }

  private step<T>(read: (scan: PlanScan) => T): T {
    const scan = this.scans[this.at]!;
    const result = read(scan);
    this.lastRead = scan.lastRead;
    if (scan.finished) this.at++;
    if (!this.turned && this.seen.size > UnionScan.maxSeen && !this.finished) {
      this.turned = true;
      this.scans = [...this.scans.slice(0, this.at + 1), this.openWhole()];
      this.at = this.scans.length - 1;
    }
    return result;
  }
}

/** A document that one of the branches has read and nobody was handed yet. */
interface Ahead {
  readonly bytes: Buffer;
  readonly doc: Doc;
  readonly keys: KeyTuple;
  readonly position: ScanPosition;
}

/** Limit of the documents that were read ahead, over all branches. */
const MAX_AHEAD_BYTES = 100 * 1024 * 1024;
/** Bytes that a branch may read ahead of the others. */
const MAX_BRANCH_BYTES = 256 * 1024;
const LARGEST_STEP = 256;
/** With more branches than that each reads but a little at first, since few documents of each will be wanted. */
const FEW_BRANCHES = 16;

class Branch implements MergeSide {
  readonly ahead: Ahead[] = [];
  /** The next of `ahead` to be handed over. */
  next = 0;
  bytes = 0;
  private handed: ScanPosition = { at: 0, last: null };

  constructor(
    readonly scan: PlanScan,
    private step: number,
  ) {}

  get finished(): boolean {
    return this.scan.finished;
  }

  get isEmpty(): boolean {
    return this.next >= this.ahead.length;
  }

  /** Reads one step further, but no more than `most` entries. */
  fill(sort: Sort, most: number): void {
    this.ahead.length = 0;
    this.next = 0;
    this.bytes = 0;
    this.scan.readChunk(
      (bytes, doc) => {
        this.ahead.push({ bytes: keep(bytes), doc, keys: sort.keysOf(doc), position: this.scan.position() });
        this.bytes += bytes.length;
        return this.bytes >= MAX_BRANCH_BYTES;
      },
      Math.min(this.step, most),
    );
    this.step = Math.min(this.step * 2, LARGEST_STEP);
  }

  first(): Ahead {
    return this.ahead[this.next]!;
  }

  take(): Ahead {
    const first = this.ahead[this.next++]!;
    this.handed = first.position;
    return first;
  }

  drop(): void {
    if (this.isEmpty) return;
    this.scan.goTo(this.handed);
    this.ahead.length = 0;
    this.next = 0;
    this.bytes = 0;
  }
}

/** Reads the branches of a plan side by side, each in the order of the sort, and hands over what comes first. */
export class MergedScan implements Scan {
  lastRead = 0;
  private readonly branches: Branch[];
  private readonly sides: SideHeap<Branch>;
  /** Documents handed over with these keys: only among equals a document can come twice. */
  private readonly seen = new Set<string>();
  private seenKeys: KeyTuple | null = null;

  constructor(
    private readonly storage: Storage,
    readonly plan: Plan,
    private readonly sort: Sort,
    scans: readonly PlanScan[],
  ) {
    const step = scans.length > FEW_BRANCHES ? 2 : 8;
    this.branches = scans.map((scan) => new Branch(scan, step));
    this.sides = new SideHeap(this.branches, (a, b) => sort.compareKeys(a.first().keys, b.first().keys) < 0);
  }

  get finished(): boolean {
    return this.sides.finished;
  }

  get keysExamined(): number {
    return sumOf(this.branches, ({ scan }) => scan.keysExamined);
  }

  get documentsExamined(): number {
    return sumOf(this.branches, ({ scan }) => scan.documentsExamined);
  }

  readChunk(visit: VisitRow, most = LARGEST_STEP): boolean {
    this.lastRead = 0;
    for (let left = most; ; left--) {
      if (!this.fillEmpty(most, Math.max(left, 1))) return false;
      const branch = this.sides.first;
      if (branch === undefined) return false;
      const first = branch.take();
      this.sides.moved();
      if (this.isNew(first) && visit(first.bytes, first.doc)) return true;
    }
  }

  dropAhead(): void {
    this.sides.dropAhead();
  }

  /**
   * True when every branch has something ahead or nothing more; false when `most` entries were read before. `wanted`:
   * so many documents at most are still to be handed over.
   */
  private fillEmpty(most: number, wanted: number): boolean {
    const { empty } = this.sides;
    while (empty.length > 0) {
      if (this.lastRead >= most) return false;
      const branch = empty.at(-1)!;
      branch.fill(this.sort, wanted);
      this.lastRead += Math.max(branch.scan.lastRead, 1);
      if (branch.isEmpty && !branch.scan.finished) continue;
      empty.pop();
      if (!branch.isEmpty) this.add(branch);
    }
    return true;
  }

  private isNew({ bytes, keys }: Ahead): boolean {
    if (!this.plan.repeats) return true;
    const { seen } = this;
    if (this.seenKeys === null || this.sort.compareKeys(this.seenKeys, keys) !== 0) seen.clear();
    this.seenKeys = keys;
    const id = this.storage.documents.encodeIdOf(bytes).latin1Slice();
    if (seen.has(id)) return false;
    seen.add(id);
    return true;
  }

  private add(branch: Branch): void {
    if (this.sides.sum(({ bytes }) => bytes) + branch.bytes > MAX_AHEAD_BYTES) {
      throw new EngineError(
        CODES.QueryExceededMemoryLimitNoDiskUseAllowed,
        `Sort exceeded memory limit of ${MAX_AHEAD_BYTES} bytes`,
      );
    }
    this.sides.add(branch);
  }
}

function sumOf<T>(items: readonly T[], size: (item: T) => number): number {
  return items.reduce((sum, item) => sum + size(item), 0);
}
