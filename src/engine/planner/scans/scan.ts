import { decodeDocument } from '../../codec/decode.js';
import type { Doc } from '../../codec/document.js';
import { FieldTest } from '../../query/match/equalities.js';
import type { Filter } from '../../query/match/match.js';
import { translateStorageError } from '../../storage/file/translate-error.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { SUM_BYTES } from '../../storage/format/stored-form.js';
import { Tally } from '../../storage/catalog/tally.js';
import type { DescribeRead } from '../../storage/long-read.js';
import type { View } from '../../storage/view.js';
import type { VisitValue } from '../../storage/file/page-ranges.js';
import { EntryWalk } from './entry-walk.js';
import type { IdSet } from './id-set.js';
import type { KeyRange } from '../key-ranges.js';
import type { Plan } from '../plan.js';

/**
 * Called with each document that the filter accepts: its stored bytes (to be copied with `keep` if they are needed
 * after the call) and what was decoded of it. True stops the scan after this document.
 */
export type VisitRow = (bytes: Buffer, doc: Doc) => boolean;

/** A walk over the documents of a plan. */
export interface Scan {
  readonly plan: Plan;
  readonly keysExamined: number;
  readonly documentsExamined: number;
  /** How many entries the last chunk looked at, or pages of them where it only counted. */
  readonly lastRead: number;
  readonly finished: boolean;
  /**
   * Reads on for one chunk of about `most` entries; true when `visit` stopped it. Must run in a fresh snapshot or in a
   * transaction; the caller checks before that the collection and the index are still the same.
   */
  readChunk(visit: VisitRow, most?: number): boolean;
  /**
   * Counts on for one chunk, without looking at documents; only for plans whose every entry is an answer. What reads in
   * an order has no use for it.
   */
  countChunk?(): number;
  /**
   * Drops what was read but not yet handed over: to be called in the turn and the view of the last chunk, when what
   * follows may be read at a later moment.
   */
  dropAhead(): void;
}

/** Counts on for one chunk, by reading documents where the scan cannot do without. */
export function countNext(scan: Scan): number {
  if (scan.countChunk) return scan.countChunk();
  let count = 0;
  scan.readChunk(() => {
    count++;
    return false;
  });
  return count;
}

/** The part of a scan that reads from its beginning to its end use. */
export type ReadingScan = Pick<
  Scan,
  'plan' | 'keysExamined' | 'documentsExamined' | 'lastRead' | 'finished' | 'readChunk'
>;

/** Where a scan stands: behind `last` in the range `at`. */
export interface ScanPosition {
  readonly at: number;
  readonly last: Buffer | null;
}

/** How many entries are read before the clock is looked at. */
const FIRST_CHUNK = 32;
const LARGEST_CHUNK = 512;
/** A chunk ends earlier than that when the filter may take long for a single document. */
const MAX_CHUNK_MS = 2;
/** A chunk ends behind the document that makes it this large: reading, checking and decoding them takes their time. */
export const MAX_CHUNK_BYTES = 128 * 1024;
const NOTHING: Doc = {};
const NO_BYTES = Buffer.alloc(0);

/**
 * Walks the ranges of a plan in chunks. Between two chunks it remembers only the last key; what is committed then
 * becomes visible, unless the reader's view is held.
 */
export class PlanScan implements Scan {
  keysExamined = 0;
  documentsExamined = 0;
  /** How many entries the last chunk looked at. */
  lastRead = 0;
  /** Called with the size of each document that is to be decoded. */
  beforeDecoding: ((bytes: number) => void) | null = null;
  /** Reports what is read, if it turns out to be much. */
  describe: DescribeRead | null = null;
  private at = 0;
  private last: Buffer | null = null;
  private chunk = FIRST_CHUNK;
  private chunkEnds = Infinity;
  /** The bytes of the documents that the chunk has read. */
  private chunkBytes = 0;
  /** True if the chunk ended in the middle of a range because its time was over, or it was large. */
  private interrupted = false;
  /** Null unless the scan meets everything there is: then what it met is compared with what is counted. */
  private tally: Tally | null;
  /** Entries are counted, and the documents they name not read. */
  private entriesOnly = false;
  /** Counts by the pages of the file; null before the first time. */
  private walk: EntryWalk | null = null;
  private readonly wantsDoc: boolean;
  /** The fields to decode where the filter needs them: made when the first document has to be decoded. */
  private mask: ReadonlySet<string> | undefined;
  private masked = false;
  /** Tests and decodes in one walk over a document's bytes; null where all is decoded, undefined before the first. */
  private fieldTest: FieldTest | null | undefined;

  constructor(
    private readonly storage: Storage,
    private readonly collection: CollectionEntry,
    readonly plan: Plan,
    private readonly filter: Filter | null,
    /** The top-level fields that `visit` wants decoded, null for all. */
    private readonly fields: ReadonlySet<string> | null,
    private readonly view: View | null = null,
    /** The documents that were met before, by their encoded `_id`. */
    private readonly seen: IdSet | null = null,
    /** The documents that this scan meets come but once, and need not be remembered. */
    private readonly forgets = false,
  ) {
    this.tally = isWhole(plan) ? new Tally(storage, collection, plan.index) : null;
    this.wantsDoc = fields === null || fields.size > 0;
  }

  get finished(): boolean {
    return this.at >= this.plan.ranges.length;
  }

  readChunk(visit: VisitRow, most = this.chunk): boolean {
    const before = this.keysExamined;
    const looked = this.documentsExamined;
    this.beginChunk();
    const { view } = this;
    try {
      return view?.transaction === undefined
        ? this.readAndCheck(visit, most)
        : view.read(() => this.readAndCheck(visit, most));
    } catch (error) {
      throw translateStorageError(error, this.storage.environment.path, this.collection.ns);
    } finally {
      this.lastRead = this.keysExamined - before;
      view?.addLooked(this.documentsExamined - looked, this.describe);
    }
  }

  /** To be called before the entries of a chunk are visited. */
  beginChunk(): void {
    this.interrupted = false;
    this.chunkBytes = 0;
    if (this.filter?.mayTakeLong === true) this.chunkEnds = performance.now() + MAX_CHUNK_MS;
  }

  /** Visits the document that an entry of this scan's index names, as `readChunk` does. */
  visitEntry(value: Buffer, keySum: number, visit: VisitRow): boolean {
    return this.examine(this.storage.documents.readByEntry(this.collection, this.plan.index!, keySum, value), visit);
  }

  private readAndCheck(visit: VisitRow, most: number): boolean {
    const stopped = this.readEntries(visit, most);
    if (!stopped) this.tally?.chunkEnded(this.finished);
    return stopped;
  }

  private readEntries(visit: VisitRow, most: number): boolean {
    this.chunk = Math.min(this.chunk * 2, LARGEST_CHUNK);
    let left = most;
    while (left > 0 && !this.finished) {
      const range = this.plan.ranges[this.at]!;
      if (this.plan.single) {
        this.at++;
        if (this.readSingle(range.start, visit)) return true;
        if (this.isChunkOver()) return false;
        continue;
      }
      const before = this.keysExamined;
      const stopped = this.readRange(range, left, visit);
      if (stopped || this.interrupted) return stopped;
      const read = this.keysExamined - before;
      if (read < left) {
        this.at++;
        this.last = null;
      }
      left -= Math.max(read, 1);
    }
    return false;
  }

  dropAhead(): void {
    const { tally, view } = this;
    if (tally === null) return;
    // Of the moment that the documents met so far are of: what is written before the next chunk is not compared.
    if (view === null) tally.chunkEnded(false);
    else view.read(() => tally.chunkEnded(false));
  }

  /** Behind the document that is being visited. */
  position(): ScanPosition {
    return { at: this.at, last: this.plan.single ? null : this.storage.environment.reader.lastKey() };
  }

  goTo({ at, last }: ScanPosition): void {
    // What is left out, or met again, cannot be compared with what is counted.
    this.tally = null;
    this.at = at;
    this.last = last;
  }

  countChunk(): number {
    if (!this.plan.single) return this.walkEntries(null);
    const found = this.view === null ? this.countSingle() : this.view.read(() => this.countSingle());
    this.keysExamined += found;
    this.at++;
    return found;
  }

  private countSingle(): number {
    this.lastRead = 1;
    return this.storage.documents.readKey(this.plan.ranges[0]!.start) === undefined ? 0 : 1;
  }

  /** Counts on the documents that were not met before; unless `tested`, every entry has to be an answer. */
  countUnseen(tested = false): number {
    if (!tested && !this.plan.single && this.plan.index !== null) {
      return this.walkEntries((bytes, from, to) => !this.entryWasSeen(bytes, from, to));
    }
    this.entriesOnly = !tested;
    let count = 0;
    this.readChunk(() => {
      count++;
      return false;
    });
    return count;
  }

  private walkEntries(visit: VisitValue | null): number {
    this.walk ??= new EntryWalk(this.storage, this.plan, this.view);
    const { walk } = this;
    const count = walk.readChunk(visit);
    this.keysExamined += walk.met;
    this.lastRead = walk.pages;
    if (walk.finished) this.at = this.plan.ranges.length;
    return count;
  }

  private readSingle(key: Buffer, visit: VisitRow): boolean {
    const { documents } = this.storage;
    const { index } = this.plan;
    this.keysExamined++;
    const value = documents.readKey(key);
    if (value === undefined) {
      documents.checkNeighbours(this.collection, index, key);
      return false;
    }
    const keySum = documents.readKeySum();
    if (index === null ? this.wasSeen(key, 5, key.length) : this.entryWasSeen(value, 0, value.length)) return false;
    const bytes =
      index === null
        ? documents.open(this.collection, keySum, value, () => key.subarray(5))
        : documents.readByEntry(this.collection, index, keySum, value);
    return this.examine(bytes, visit);
  }

  private readRange(range: KeyRange, limit: number, visit: VisitRow): boolean {
    const { environment, documents } = this.storage;
    const { reader } = environment;
    const { reverse, index } = this.plan;
    const entries = reader.range(
      reverse
        ? {
            start: this.last ?? range.end,
            end: range.start,
            reverse,
            limit,
            exclusiveStart: true,
            inclusiveEnd: true,
          }
        : { start: this.last ?? range.start, end: range.end, limit, exclusiveStart: this.last !== null },
    );
    const { collection, tally, seen, entriesOnly } = this;
    const idOfKey = (): Buffer => reader.lastKey().subarray(5);
    const wasMet = (value: Buffer): boolean => {
      if (index !== null) return this.entryWasSeen(value, 0, value.length);
      const key = reader.lastKey();
      return this.wasSeen(key, 5, key.length);
    };
    let read = 0;
    for (const { value } of entries) {
      read++;
      this.keysExamined++;
      if (tally !== null) tally.add(value);
      if (seen !== null && wasMet(value)) continue;
      if (entriesOnly) {
        visit(NO_BYTES, NOTHING);
        continue;
      }
      const keySum = reader.keySum();
      const bytes =
        index === null
          ? documents.open(collection, keySum, value, idOfKey)
          : documents.readByEntry(collection, index, keySum, value);
      const stopped = this.examine(bytes, visit);
      this.interrupted = this.isChunkOver();
      if (stopped || this.interrupted) {
        this.last = reader.lastKey();
        return stopped;
      }
    }
    if (read === limit) this.last = reader.lastKey();
    return false;
  }

  private wasSeen(bytes: Buffer, from: number, to: number): boolean {
    return this.seen !== null && this.seen.meet(bytes, from, to, !this.forgets);
  }

  private entryWasSeen(bytes: Buffer, from: number, to: number): boolean {
    return this.wasSeen(bytes, from + 1, to - SUM_BYTES);
  }

  /** True when what was visited since the chunk began is enough for one. */
  isChunkOver(): boolean {
    if (this.chunkBytes > MAX_CHUNK_BYTES) return true;
    return this.chunkEnds !== Infinity && performance.now() > this.chunkEnds;
  }

  private examine(bytes: Buffer, visit: VisitRow): boolean {
    this.documentsExamined++;
    this.chunkBytes += bytes.length;
    const { filter } = this;
    const fieldTest = this.fieldTest === undefined ? (this.fieldTest = this.openFieldTest()) : this.fieldTest;
    if (fieldTest !== null) {
      const passes = fieldTest.test(bytes);
      if (passes === false) return false;
      if (passes === true) {
        if (this.beforeDecoding !== null) this.beforeDecoding(bytes.length);
        const doc = fieldTest.decode(bytes);
        return (filter === null || filter.equalities !== null || filter.matches(doc)) && visit(bytes, doc);
      }
    }
    const known = filter === null ? true : filter.testBytes(bytes);
    if (known === false) return false;
    if (this.beforeDecoding !== null) this.beforeDecoding(bytes.length);
    if (known === true) {
      return visit(bytes, this.wantsDoc ? decodeDocument(bytes, 'engine', this.fields ?? undefined) : NOTHING);
    }
    const doc = decodeDocument(bytes, 'engine', this.filterMask(filter!));
    return filter!.matches(doc) && visit(bytes, doc);
  }

  private openFieldTest(): FieldTest | null {
    const { filter, fields } = this;
    if (fields === null || !this.wantsDoc) return null;
    if (filter === null) return FieldTest.of([], [...fields]);
    if (filter.equalities !== null) return FieldTest.of(filter.equalities, [...fields]);
    const mask = this.filterMask(filter);
    return mask === undefined ? null : FieldTest.of([], [...mask]);
  }

  private filterMask(filter: Filter): ReadonlySet<string> | undefined {
    if (!this.masked) {
      this.masked = true;
      this.mask = this.fields === null || filter.fields === null ? undefined : union(filter.fields, this.fields);
    }
    return this.mask;
  }
}

function isWhole({ bounds, ranges, single }: Plan): boolean {
  return !single && ranges.length === 1 && bounds.points.length === 0 && bounds.range === null;
}

function union(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  if (b.size === 0) return a;
  if (a.size === 0) return b;
  return new Set([...a, ...b]);
}

/** A copy of bytes that a later read would overwrite. */
export function keep(bytes: Buffer): Buffer {
  const kept = Buffer.allocUnsafe(bytes.length);
  // The length is set by who reads into these bytes: the array is longer.
  kept.set(bytes.subarray(0, bytes.length));
  return kept;
}

/** Counts the entries in the ranges of a plan without branches, up to `most`. */
export function countEntries(storage: Storage, { ranges }: Plan, most: number): number {
  let count = 0;
  for (const { start, end } of ranges) {
    if (count >= most) break;
    count += storage.environment.reader.count(start, end, most - count);
  }
  return count;
}
