import { type PageState, NODE_BYTES, PageError } from './page-layout.js';
import { firstFrom, keyLength, nodeKey, nodeAt } from './page-nodes.js';
import type { KeyBounds, PageRanges } from './page-ranges.js';

/**
 * Steps through the entries of one range by the pages of the file, and leaps over those that come before what another
 * cursor stands at: the tail of a key, behind the bytes with which all keys of its range begin. Throws PageError for a
 * page that is not what LMDB wrote.
 */
export class PageCursor {
  finished = false;
  /** The pages that were read so far. */
  pages = 0;
  private leaf: Buffer = Buffer.alloc(0);
  /** The node it stands at, and the first behind the range. */
  private at = 0;
  private to = 0;
  /** Where the next leaf begins; null when the range ends in this one. */
  private upTo: Buffer | null = null;
  /** Where in the leaf the tail lies that it stands at. */
  private tailFrom = 0;
  private tailTo = 0;
  private state: PageState | null = null;

  constructor(
    private readonly file: PageRanges,
    /** Each key in the range begins with the whole of its start. */
    private readonly range: KeyBounds,
  ) {}

  /** To be called before the first step, and before those of each later turn: goes on in that state. */
  goOnIn(state: PageState): void {
    if (this.finished || this.state?.transaction === state.transaction) return;
    const key = this.state === null ? this.range.start : nodeKey(this.leaf, this.at);
    this.state = state;
    if (this.leaf.length !== state.pageBytes) this.leaf = Buffer.allocUnsafeSlow(state.pageBytes);
    this.load(key);
  }

  next(): void {
    if (++this.at < this.to) this.stand();
    else this.load(this.upTo);
  }

  /**
   * Goes to the first entry whose tail is not before that of `other`, which has to be beyond the present one. Returns
   * how the two compare then, 0 at the end.
   */
  leapTo(other: PageCursor): number {
    // Mostly it is the next one.
    this.next();
    if (this.finished) return 0;
    const order = this.compare(other);
    if (order >= 0) return order;
    this.at = this.firstInLeaf(other);
    if (this.at < this.to) {
      this.stand();
    } else {
      const { upTo } = this;
      const wanted = Buffer.concat([this.range.start, other.leaf.subarray(other.tailFrom, other.tailTo)]);
      this.load(upTo === null || upTo.compare(wanted) > 0 ? upTo : wanted);
    }
    return this.finished ? 0 : this.compare(other);
  }

  /** The first node behind the present one whose tail is not before that of `other`. */
  private firstInLeaf(other: PageCursor): number {
    let low = this.at + 1;
    let high = this.to;
    for (let step = 1; low + step <= high; step *= 2) {
      if (this.compareAt(low + step - 1, other) >= 0) high = low + step - 1;
      else low += step;
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.compareAt(middle, other) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Compares what both stand at as LMDB compares keys: byte by byte, then by length. */
  compare(other: PageCursor): number {
    return this.compareTail(this.tailFrom, this.tailTo, other);
  }

  private compareAt(n: number, other: PageCursor): number {
    const node = nodeAt(this.leaf, n);
    const from = node + NODE_BYTES;
    return this.compareTail(from + this.range.start.length, from + keyLength(this.leaf, node), other);
  }

  private compareTail(from: number, to: number, { leaf: others, tailFrom, tailTo }: PageCursor): number {
    const { leaf } = this;
    const length = to - from;
    const otherLength = tailTo - tailFrom;
    const shared = Math.min(length, otherLength);
    for (let at = 0; at < shared; at++) {
      const difference = leaf[from + at]! - others[tailFrom + at]!;
      if (difference !== 0) return difference;
    }
    return length - otherLength;
  }

  /** Stands at the first entry of the range whose key is not before `key`; null: there is none. */
  private load(key: Buffer | null): void {
    const { leaf, range } = this;
    for (let from = key; from !== null; from = this.upTo) {
      const { nodes, pages, upTo } = this.file.readLeafOf(this.state!, from, leaf);
      this.pages += pages;
      if (upTo !== null && upTo.compare(from) <= 0) throw new PageError('a leaf ends before it begins');
      this.at = firstFrom(leaf, 0, nodes, from);
      const goesOn = upTo !== null && upTo.compare(range.end) < 0;
      this.to = goesOn ? nodes : firstFrom(leaf, this.at, nodes, range.end);
      this.upTo = goesOn ? upTo : null;
      if (this.at < this.to) {
        this.stand();
        return;
      }
    }
    this.finished = true;
  }

  private stand(): void {
    const { leaf } = this;
    const node = nodeAt(leaf, this.at);
    this.tailFrom = node + NODE_BYTES + this.range.start.length;
    this.tailTo = node + NODE_BYTES + keyLength(leaf, node);
  }
}
