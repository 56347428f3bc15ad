import { PageCursor } from '../../storage/file/page-cursor.js';
import type { PageState } from '../../storage/file/page-layout.js';
import type { PageRanges } from '../../storage/file/page-ranges.js';
import type { KeyRange } from '../key-ranges.js';
import type { Plan } from '../plan.js';
import { haveSameTails } from '../sort-order.js';

/** Each step looks at what all ranges stand at. */
const MAX_RANGES = 16;
/** Steps, or pages read, after which a chunk ends: about a millisecond. */
const CHUNK_STEPS = 4096;
const CHUNK_PAGES = 128;

/**
 * Counts the entries in several ranges whose documents have an entry in an earlier one. All ranges have the documents
 * in the same order, so none is read where no other has anything.
 */
export class SharedEntries {
  /** Of the last chunk. */
  pages = 0;
  private live: PageCursor[];
  /** How the only two compare, where that is known. */
  private order: number | null = null;

  constructor(file: PageRanges, ranges: readonly KeyRange[]) {
    this.live = ranges.map((range) => new PageCursor(file, range));
  }

  /** With one range left nothing can be shared any more. */
  get finished(): boolean {
    return this.live.length < 2;
  }

  /** How many more there are in the next chunk. Throws PageError as PageCursor does. */
  countChunk(state: PageState): number {
    const before = pagesOf(this.live);
    const { live } = this;
    for (const cursor of live) cursor.goOnIn(state);
    this.live = live.filter(({ finished }) => !finished);
    this.order = null;
    let shared = 0;
    for (let step = 0; step < CHUNK_STEPS && !this.finished; step++) {
      if (this.step()) shared++;
      if (step % 64 === 0 && pagesOf(live) - before > CHUNK_PAGES) break;
    }
    this.pages = Math.max(pagesOf(live) - before, 1);
    return shared;
  }

  /** Moves the range whose document comes first; true when another has the same one. */
  private step(): boolean {
    const { live } = this;
    let first = live[0]!;
    let second = live[1]!;
    let order = this.order ?? first.compare(second);
    this.order = null;
    if (order > 0) {
      [first, second] = [second, first];
      order = -order;
    }
    for (let n = 2; n < live.length; n++) {
      const other = live[n]!;
      const toFirst = other.compare(first);
      if (toFirst < 0) {
        [first, second, order] = [other, first, toFirst];
      } else if (order < 0 && other.compare(second) < 0) {
        second = other;
        order = -toFirst;
      }
    }
    if (order === 0) {
      first.next();
    } else {
      const leapt = first.leapTo(second);
      if (live.length === 2) this.order = first === live[0] ? leapt : -leapt;
    }
    if (first.finished) {
      this.live = live.filter((cursor) => cursor !== first);
      this.order = null;
    }
    return order === 0;
  }
}

function pagesOf(cursors: readonly PageCursor[]): number {
  return cursors.reduce((sum, { pages }) => sum + pages, 0);
}

/**
 * The ranges of exact plans in which the documents follow each other in one order: behind values that are the same
 * throughout a range, all indexes have the same fields. Null when it is not so, or when there are many.
 */
export function rangesInOneOrder(branches: readonly Plan[]): KeyRange[] | null {
  const [first, ...others] = branches;
  if (first === undefined || !branches.every(hasOrderedTails)) return null;
  if (!others.every((other) => haveSameTails(first, other))) return null;
  const ranges = branches.flatMap((branch) => branch.ranges);
  return ranges.length > MAX_RANGES ? null : ranges;
}

/** Behind the points of each range there are further fields and the `_id`, so that a tail stands for one document. */
function hasOrderedTails({ index, bounds, exact, single }: Plan): boolean {
  return exact && !single && index !== null && !index.definition.unique && !index.isGeo && bounds.range === null;
}
