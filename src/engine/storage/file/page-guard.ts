import { damagedFile } from '../damage.js';
import { type Branch, BranchPages } from './branch-pages.js';
import { DamagedGaps } from './damaged-gaps.js';
import { checkKeys, edgeBelow, highKey, lowKey, PageBits, type Way, wayBeside } from './page-way.js';
import { type PageState, HEADER_BYTES, PageError, writerOf } from './page-layout.js';
import { type Page, PageFile } from './page-file.js';
import { childOf, lowerBound } from './page-nodes.js';

const NO_KEY = Buffer.alloc(0);
/** Behind every key. */
const END = Buffer.from([0xff]);
/**
 * Leaves that are checked before a range is stepped into them: a snapshot, or a transaction that removes entries, may
 * have fewer in a leaf than the newest state, by which they are counted.
 */
const LEAVES_AHEAD = 3;
/** A range that begins behind its start, and one that goes backwards, reads entries that it does not give. */
const ENTRIES_AHEAD = 2;

/** A leaf before the step into it: how many entries it has, or why it cannot be read. */
type Ahead = number | PageError;

/**
 * Checks pages before LMDB reads or changes them: what a damaged one says of itself leads LMDB to memory that is not
 * its own, which ends the process, and keys out of order are not found. Each page is checked once; what LMDB has
 * written since the file was opened is right. When every page has been found right, nothing is checked any more.
 *
 * Pages are looked at in the newest state. Another process may use them again at that moment, unless this one reads a
 * snapshot: what looks damaged is looked at once more while one is held.
 */
export class PageGuard {
  private readonly file: PageFile;
  private readonly branches: BranchPages;
  /** The last commit when the file was opened. */
  private readonly since: PageState;
  /** Pages that were found right in their place. */
  private readonly checked: PageBits;
  /** Leaves whose neighbours leave them all their keys, and those which LMDB may join with what is beside the way. */
  private readonly bounded: PageBits;
  private readonly joined: PageBits;
  private readonly leaf: Buffer;
  private readonly head = Buffer.alloc(HEADER_BYTES);
  /** The newest state when this turn, or this transaction, began to read. */
  private state: PageState | null = null;
  /** How many entries this transaction has removed. */
  private removed = 0;
  /** Children of old branches, and those that two of them name: these are checked each time that they are reached. */
  private readonly claimed: PageBits;
  private readonly disputed = new Set<number>();
  gaps = new DamagedGaps();
  /** A snapshot is held: nobody uses the pages of the newest state again. */
  private isHeld = false;
  /** Nothing that could be damaged is left. */
  isOver = false;

  constructor(
    private readonly path: string,
    /** Begins to read a snapshot, unless this thread writes; returns what ends it. */
    private readonly hold: () => () => void,
  ) {
    this.file = new PageFile(path);
    this.branches = new BranchPages(this.file);
    this.since = this.file.readState();
    const { lastPage, pageBytes } = this.since;
    this.checked = new PageBits(lastPage);
    this.bounded = new PageBits(lastPage);
    this.joined = new PageBits(lastPage);
    this.claimed = new PageBits(lastPage);
    this.leaf = Buffer.alloc(pageBytes);
  }

  /** To be called when a turn begins to read, and when a transaction begins. */
  renew(): void {
    this.state = null;
    this.removed = 0;
  }

  /** To be called when all pages were found right, `gaps` with what lies between their entries. */
  trust(gaps = this.gaps): void {
    this.gaps = gaps;
    this.isOver = gaps.size === 0;
    if (this.isOver) this.branches.forget();
  }

  /** To be called with each key that is read, and the ends of each range: throws DAMAGED for one in a gap. */
  checkGaps(key: Buffer): void {
    this.refuseDamage(() => {
      this.gaps.check(key);
    });
  }

  /**
   * To be called before a read of the key, or a put: throws DAMAGED when a page on the way to it is damaged, or a key
   * that parts it from the leaf before or behind: what is not found in one lies in the other then.
   */
  check(key: Buffer): void {
    if (!this.isOver) this.refuseDamage(() => this.wayTo(key));
  }

  /**
   * To be called before a removal of the key, as `check`: a page that is too empty is joined with one beside it, and an
   * entry whose key is damaged would stay.
   */
  checkRemoval(key: Buffer): void {
    if (this.isOver) return;
    this.refuseDamage(() => {
      const way = this.wayTo(key);
      if (way !== null) this.checkAround(way);
      this.gaps.check(key);
    });
    this.removed++;
  }

  /** As `check`, but throws PageError. */
  checkWay(key: Buffer): void {
    if (!this.isOver) this.lookTwice(() => this.wayTo(key));
  }

  /**
   * To be called before the entries from `start` up to `end` are counted: checks the leaves at both ends. Throws
   * PageError, also when a damaged entry may lie on either side of an end.
   */
  checkEnds(start: Buffer, end: Buffer): void {
    if (!this.isOver) {
      this.lookTwice(() => {
        this.wayTo(start);
        const last = this.findWay(end, true);
        if (last !== null) this.countLeaf(last);
      });
    }
    this.gaps.check(start);
    this.gaps.check(end);
  }

  /** The way to the key when everything about it is right, null for an empty file. */
  private wayTo(key: Buffer): Way | null {
    const way = this.findWay(key, false);
    if (way === null || this.bounded.has(way.leaf)) return way;
    this.countLeaf(way);
    this.checkBound(way, -1);
    this.checkBound(way, 1);
    if (!this.disputed.has(way.leaf)) this.bounded.add(way.leaf);
    return way;
  }

  /**
   * To be called before each step through a range that begins at `start`: checks leaves before they are stepped into.
   * Throws DAMAGED.
   */
  openWalk(start: Buffer | undefined, isBackwards: boolean): () => void {
    let next: Buffer | null = start ?? (isBackwards ? END : NO_KEY);
    let isFirst = true;
    let left = -ENTRIES_AHEAD;
    const ahead: Ahead[] = [];
    const look = (key: Buffer): Ahead => {
      const way = isFirst ? this.wayTo(key) : this.findWay(key, isBackwards);
      next = null;
      if (way === null) return 0;
      const entries = isFirst ? this.countFrom(way, key, isBackwards) : this.countLeaf(way);
      const [from, to] = [lowKey(way, way.branches.length), highKey(way, way.branches.length)];
      // A step back begins from the first key that is not before `start`.
      if (isFirst && isBackwards && to !== null) this.wayTo(to);
      if (isBackwards) next = from.length === 0 ? null : from;
      else next = to;
      isFirst = false;
      return entries;
    };
    const lookAhead = (key: Buffer): Ahead => {
      try {
        return this.lookTwice(() => {
          next = key;
          return look(key);
        });
      } catch (error) {
        if (!(error instanceof PageError)) throw error;
        next = null;
        return error;
      }
    };
    return () => {
      if (this.isOver) return;
      left--;
      for (;;) {
        while (ahead.length < LEAVES_AHEAD && next !== null) ahead.push(lookAhead(next));
        if (left >= 0 || ahead.length === 0) return;
        const reached = ahead.shift()!;
        if (reached instanceof PageError) throw damagedFile(this.path, reached.message);
        left += reached;
      }
    };
  }

  /**
   * Checks the leaf that holds the key, or would. Returns the first key that lies behind it, null for none. To be
   * called while this thread reads a snapshot. Throws PageError.
   */
  checkLeaf(key: Buffer): Buffer | null {
    this.renew();
    return this.whileHeld(() => {
      const way = this.findWay(key, false);
      if (way === null) return null;
      this.countLeaf(way);
      return highKey(way, way.branches.length);
    });
  }

  /** To be called after LMDB has closed the file. */
  close(): void {
    this.file.close();
  }

  private refuseDamage<T>(work: () => T): T {
    try {
      return this.lookTwice(work);
    } catch (error) {
      if (error instanceof PageError) throw damagedFile(this.path, error.message);
      throw error;
    }
  }

  private lookTwice<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
    }
    const release = this.hold();
    try {
      return this.whileHeld(work);
    } finally {
      release();
    }
  }

  private whileHeld<T>(work: () => T): T {
    this.state = null;
    this.isHeld = true;
    try {
      return work();
    } finally {
      this.isHeld = false;
    }
  }

  /**
   * The way to the leaf that holds the key, or would; `isBefore`: that holds what comes before the key. The branches
   * are checked, the leaf is not. Null for an empty file.
   */
  private findWay(key: Buffer, isBefore: boolean): Way | null {
    const state = (this.state ??= this.file.readState());
    if (state.root === null) return null;
    const way: Way = { state, branches: [], at: [], leaf: state.root };
    for (let level = 1; level < state.depth; level++) {
      const branch = this.readBranch(way, way.leaf);
      const child = lowerBound(branch.bytes, 1, branch.nodes, key, !isBefore) - 1;
      way.branches.push(branch);
      way.at.push(child);
      way.leaf = childOf(branch.bytes, child);
    }
    return way;
  }

  /** Reads the branch below the last one of the way and checks it. */
  private readonly readBranch = (way: Way, number: number): Branch => {
    const { state, branches } = way;
    const branch = this.branches.get({ state, left: 0, pages: 0 }, number);
    this.checkWriter(way, branch.written);
    if (this.checked.has(number)) return branch;
    const isOld = number <= this.since.lastPage && branch.written <= this.since.transaction;
    if (isOld || this.disputed.has(number)) {
      const page = this.file.readPage(number, false, state);
      checkKeys(page, lowKey(way, branches.length), highKey(way, branches.length));
      if (isOld) this.claim(page.children, state);
    }
    this.markChecked(number);
    return branch;
  };

  /** A damaged number may lead to a page that is right, in another place. */
  private claim(children: readonly number[], { lastPage }: PageState): void {
    for (const child of children) {
      if (child < 2 || child > lastPage) throw new PageError('it names a page that does not exist');
      if (child <= this.since.lastPage && this.claimed.has(child)) {
        this.disputed.add(child);
        for (const bits of [this.checked, this.bounded, this.joined]) bits.remove(child);
      }
      this.claimed.add(child);
    }
  }

  private markChecked(number: number): void {
    if (!this.disputed.has(number)) this.checked.add(number);
  }

  /**
   * A page is written again with each one below it, so that none is of a later transaction than the one above. LMDB
   * would take one of a transaction to come for its own.
   */
  private checkWriter({ state, branches }: Way, written: number): void {
    if (written > (branches.at(-1)?.written ?? state.transaction)) {
      throw new PageError('it is of a transaction that never was');
    }
  }

  /** Checks the leaf of the way unless that has been done; how many entries it has. */
  private countLeaf(way: Way): number {
    const { branches, at, leaf, state } = way;
    const above = branches.at(-1);
    const known = above === undefined ? -1 : above.below[at.at(-1)!]!;
    if (known >= 0 && this.checked.has(leaf)) return known;
    const count = this.file.readHead(leaf, true, state, this.head, HEADER_BYTES);
    this.checkLeafPage(way, this.head);
    if (above !== undefined) above.below[at.at(-1)!] = count;
    return count;
  }

  /** As `countLeaf`, of the entries from the key on in the direction of a walk. */
  private countFrom(way: Way, key: Buffer, isBackwards: boolean): number {
    const count = this.file.readHead(way.leaf, true, way.state, this.leaf, way.state.pageBytes);
    this.checkLeafPage(way, this.leaf);
    const at = lowerBound(this.leaf, 0, count, key, isBackwards);
    return isBackwards ? at : count - at;
  }

  private checkLeafPage(way: Way, head: Buffer): void {
    const { leaf, state, branches } = way;
    this.checkWriter(way, writerOf(head));
    if (this.checked.has(leaf)) return;
    if (!this.isNew(leaf, head)) {
      const page = this.readWhole(leaf, true, state);
      const [low, high] = [lowKey(way, branches.length), highKey(way, branches.length)];
      checkKeys(page, low, high);
      this.gaps.addLeaf(page, low, high, this.isHeld);
    }
    this.markChecked(leaf);
  }

  /**
   * Throws PageError when the leaf beside this one has keys beyond the key between them. One that is damaged in itself
   * harms who reads it alone.
   */
  private checkBound(way: Way, side: -1 | 1): void {
    let page: Page;
    let beside: Way | null;
    try {
      beside = wayBeside(way, side, this.readBranch);
      if (beside === null || this.checked.has(beside.leaf)) return;
      const count = this.file.readHead(beside.leaf, true, way.state, this.head, HEADER_BYTES);
      if (this.isNew(beside.leaf, this.head) || count === 0) return;
      page = this.readWhole(beside.leaf, true, way.state);
      checkKeys(page, NO_KEY, null);
    } catch (error) {
      if (error instanceof PageError) return;
      throw error;
    }
    checkKeys(page, lowKey(beside, beside.branches.length), highKey(beside, beside.branches.length));
  }

  /** Checks the pages with which LMDB joins one of the way that is too empty, and those whose keys it takes then. */
  private checkAround(way: Way): void {
    if (this.joined.has(way.leaf)) return;
    let isWhole = true;
    for (let level = way.branches.length - 1; level >= 0; level--) {
      const { nodes } = way.branches[level]!;
      const at = way.at[level]!;
      for (const child of new Set([at - 1, at + 1, 0])) {
        if (child < 0 || child >= nodes || child === at) continue;
        // A branch is joined with one beside it when it has one child left.
        const joined = Math.abs(child - at) > 1 ? level : level + 1;
        const mayBeJoined = joined === way.branches.length || way.branches[joined]!.nodes - this.removed <= 3;
        try {
          this.countLeaf(edgeBelow(way, level, child, false, this.readBranch));
        } catch (error) {
          if (mayBeJoined || !(error instanceof PageError)) throw error;
          isWhole = false;
        }
      }
    }
    if (isWhole && !this.disputed.has(way.leaf)) this.joined.add(way.leaf);
  }

  /** What two branches name may have been freed by the one and written again, while the other one still leads to it. */
  private isNew(number: number, head: Buffer): boolean {
    if (this.disputed.has(number)) return false;
    return number > this.since.lastPage || writerOf(head) > this.since.transaction;
  }

  /** Large values are read in the length that their node says, and as many pages are freed as their header says. */
  private readWhole(number: number, isLeaf: boolean, state: PageState): Page {
    const page = this.file.readPage(number, isLeaf, state);
    for (const value of page.values) if (value.isBig) this.file.checkBigValue(value, state);
    return page;
  }
}
