import type { FileReader } from '../../storage/file/reader.js';
import { translateStorageError } from '../../storage/file/translate-error.js';
import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import type { KeyRange } from '../key-ranges.js';
import type { Plan } from '../plan.js';
import { keep, type PlanScan, type Scan, type VisitRow } from './scan.js';
import { type MergeSide, SideHeap } from './heap.js';

/** Entries read or handed over between two looks at the clock. */
const CHUNK = 512;
/** Most entries that a range reads at once, after handing over again and again. */
const LARGEST_STEP = 64;

/** An entry that was read: what its key holds behind its range's shared bytes, as Latin-1 text. */
interface Entry {
  readonly tail: string;
  readonly keySum: number;
  readonly value: Buffer;
}

/** One range, read in steps that grow. */
class Side implements MergeSide {
  readonly ahead: Entry[] = [];
  /** The next of `ahead`. */
  next = 0;
  finished = false;
  private step = 1;
  /** The tail behind which to read on, and the last one handed over. */
  private read: string | null = null;
  private handed: string | null = null;

  constructor(
    private readonly range: KeyRange,
    /** Tests the documents of this range's plan. */
    readonly documents: PlanScan,
  ) {}

  get tail(): string {
    return this.ahead[this.next]!.tail;
  }

  get isEmpty(): boolean {
    return this.next >= this.ahead.length;
  }

  /** Reads one step further and returns how many entries there were. */
  fill(reader: FileReader): number {
    const { range, step } = this;
    const { reverse } = this.documents.plan;
    const last = this.read === null ? null : this.keyOf(this.read);
    this.ahead.length = 0;
    this.next = 0;
    const wanted = reverse
      ? { start: last ?? range.end, end: range.start, reverse, limit: step, exclusiveStart: true, inclusiveEnd: true }
      : { start: last ?? range.start, end: range.end, limit: step, exclusiveStart: last !== null };
    const add = (value: Buffer): void => {
      this.ahead.push({ tail: reader.keyFrom(range.shared), keySum: reader.keySum(), value: keep(value) });
    };
    if (step === 1) {
      const first = reader.first(wanted);
      if (first !== undefined) add(first);
    } else {
      for (const { value } of reader.range(wanted)) add(value);
    }
    this.finished = this.ahead.length < step;
    if (!this.isEmpty) this.read = this.ahead.at(-1)!.tail;
    this.step = Math.min(step * 2, LARGEST_STEP);
    return this.ahead.length;
  }

  take(): Entry {
    const entry = this.ahead[this.next++]!;
    this.handed = entry.tail;
    return entry;
  }

  drop(): void {
    if (this.isEmpty) return;
    this.ahead.length = 0;
    this.next = 0;
    this.read = this.handed;
    this.finished = false;
  }

  private keyOf(tail: string): Buffer {
    return Buffer.concat([this.range.start.subarray(0, this.range.shared), Buffer.from(tail, 'latin1')]);
  }
}

/**
 * Reads ranges side by side by the entries alone, for plans that `mergesByKeys`: a document is read when its turn has
 * come, so that a range that has nothing to add costs one entry.
 */
export class EntryMerge implements Scan {
  lastRead = 0;
  keysExamined = 0;
  private readonly sides: SideHeap<Side>;
  private handed: string | null = null;

  constructor(
    private readonly storage: Storage,
    readonly plan: Plan,
    /** For each plan that is merged, what tests its documents. */
    private readonly parts: readonly PlanScan[],
    private readonly view: View | null,
  ) {
    const sides = parts.flatMap((part) => part.plan.ranges.map((range) => new Side(range, part)));
    const reverse = parts[0]?.plan.reverse === true;
    this.sides = new SideHeap(sides, reverse ? (a, b) => a.tail > b.tail : (a, b) => a.tail < b.tail);
  }

  get finished(): boolean {
    return this.sides.finished;
  }

  get documentsExamined(): number {
    return this.parts.reduce((sum, { documentsExamined }) => sum + documentsExamined, 0);
  }

  readChunk(visit: VisitRow): boolean {
    const { view } = this;
    const looked = this.documentsExamined;
    this.lastRead = 0;
    for (const part of this.parts) part.beginChunk();
    try {
      return view === null ? this.readOn(visit) : view.read(() => this.readOn(visit));
    } catch (error) {
      throw translateStorageError(error, this.storage.environment.path);
    } finally {
      view?.addLooked(this.documentsExamined - looked, this.parts[0]?.describe ?? null);
    }
  }

  dropAhead(): void {
    this.sides.dropAhead();
  }

  private readOn(visit: VisitRow): boolean {
    const { sides } = this;
    while (this.lastRead < CHUNK) {
      if (!this.fillEmpty()) return false;
      const side = sides.first;
      if (side === undefined) return false;
      const entry = side.take();
      sides.moved();
      // The same tail stands for the same document.
      if (entry.tail === this.handed) continue;
      this.handed = entry.tail;
      this.lastRead++;
      const { documents } = side;
      if (documents.visitEntry(entry.value, entry.keySum, visit)) return true;
      if (documents.isChunkOver()) return false;
    }
    return false;
  }

  /** True when every range has something ahead or nothing more; false when the chunk ended before. */
  private fillEmpty(): boolean {
    const { sides } = this;
    const { reader } = this.storage.environment;
    while (sides.empty.length > 0) {
      if (this.lastRead >= CHUNK) return false;
      const side = sides.empty.pop()!;
      const read = side.fill(reader);
      this.keysExamined += read;
      this.lastRead += Math.max(read, 1);
      if (read > 0) sides.add(side);
    }
    return true;
  }
}
