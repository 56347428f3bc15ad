import { damagedFile } from '../damage.js';
import { DamagedGaps } from './damaged-gaps.js';
import { BIG_VALUE, numberAt, type Page, PageError, PageFile, type PageState, writerOf } from './page-file.js';
import { childOf, FLAGS, lowerBound, nodeAt, nodeKey } from './page-nodes.js';

const NO_KEY = Buffer.alloc(0);
const DAMAGED_ENTRY = 'an entry of what was read is damaged';
/** Behind every key. */
const END = Buffer.from([0xff]);

/** A leaf that was found right. */
interface CheckedLeaf {
  /** How many of its entries lie from the key on, in the direction of the walk. */
  readonly entries: number;
  /** Its keys are at least `from` and lie before `to`; null: no end. */
  readonly from: Buffer;
  readonly to: Buffer | null;
}

/**
 * Checks pages before LMDB reads or changes them: what a damaged one says of itself leads LMDB to memory that is not
 * its own, which ends the process, and keys out of order are not found. Each page is checked once; what LMDB has
 * written since the file was opened is right. When every page has been found right, nothing is checked any more.
 */
export class PageGuard {
  private readonly file: PageFile;
  /** The last commit when the file was opened. */
  private readonly since: PageState;
  /** One bit a page: it has been found right. */
  private readonly checked: Uint8Array;
  private readonly page: Buffer;
  private readonly sibling: Buffer;
  private gaps = new DamagedGaps();
  /** Nothing that could be damaged is left. */
  isOver = false;

  constructor(private readonly path: string) {
    this.file = new PageFile(path);
    this.since = this.file.readState();
    this.checked = new Uint8Array((this.since.lastPage >>> 3) + 1);
    this.page = Buffer.alloc(this.since.pageBytes);
    this.sibling = Buffer.alloc(this.since.pageBytes);
  }

  /**
   * Throws DAMAGED when a page on the way to the key is damaged, or one beside the way. To be called while this thread
   * reads a snapshot or holds the write lock: pages of the newest state are not used again then.
   */
  check(key: Buffer): void {
    if (this.isOver) return;
    this.refuseDamage(() => this.walk(key, false, true));
  }

  /**
   * To be called before each step through a range that begins at `start`: checks each leaf before it is stepped into.
   * Throws DAMAGED.
   */
  openWalk(start: Buffer | undefined, isBackwards: boolean): () => void {
    let left = 0;
    let next: Buffer | null = start ?? (isBackwards ? END : NO_KEY);
    let isBefore = false;
    return () => {
      while (left-- <= 0 && next !== null && !this.isOver) {
        const key: Buffer = next;
        const { entries, from, to } = this.refuseDamage(() =>
          this.walk(key, isBackwards ? isBefore : false, false, isBackwards),
        );
        left = entries;
        if (isBackwards) next = from.length === 0 ? null : from;
        else next = to;
        isBefore = true;
      }
    };
  }

  /**
   * Checks the leaf that holds the key, or would. Returns the first key that lies behind it, null for none. Throws
   * PageError.
   */
  checkLeaf(key: Buffer): Buffer | null {
    return this.walk(key, false, false).to;
  }

  /** To be called when all pages were found right, `gaps` with what lies between them. */
  trust(gaps = this.gaps): void {
    this.gaps = gaps;
    this.isOver = gaps.size === 0;
  }

  /** To be called with each key that is read, and the ends of each range: throws DAMAGED for one in a gap. */
  checkGaps(key: Buffer): void {
    this.refuseDamage(() => this.checkWay(key));
  }

  /** As `checkGaps`, but throws PageError. */
  checkWay(key: Buffer): void {
    if (this.gaps.has(key)) throw new PageError(DAMAGED_ENTRY);
  }

  /** Throws PageError when a damaged entry may belong to the keys from `start` up to `end`. */
  checkRange(start: Buffer, end: Buffer): void {
    if (this.gaps.meets(start, end)) throw new PageError(DAMAGED_ENTRY);
  }

  /** To be called after LMDB has closed the file. */
  close(): void {
    this.file.close();
  }

  private refuseDamage<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof PageError) throw damagedFile(this.path, error.message);
      throw error;
    }
  }

  /** `isBefore`: goes to the leaf that holds what comes before the key. */
  private walk(key: Buffer, isBefore: boolean, checksBeside: boolean, isBackwards = false): CheckedLeaf {
    const state = this.file.readState();
    const { page } = this;
    let from: Buffer = NO_KEY;
    let to: Buffer | null = null;
    let number = state.root;
    for (let level = 1; number !== null; level++) {
      const isLeaf = level === state.depth;
      const count = this.read(number, isLeaf, state, page, from, to);
      if (isLeaf) {
        this.checkValue(key, count, state);
        const at = lowerBound(page, 0, count, key, isBackwards && !isBefore);
        return { entries: isBackwards ? at : count - at, from, to };
      }
      const at = lowerBound(page, 1, count, key, !isBefore) - 1;
      // A page that becomes too empty is joined with one beside it; and a key that is not found may lie there.
      if (checksBeside) {
        for (const beside of [at - 1, at + 1]) {
          if (beside < 0 || beside >= count) continue;
          const besideFrom = beside === 0 ? from : nodeKey(page, beside);
          const besideTo = beside + 1 < count ? nodeKey(page, beside + 1) : to;
          this.read(childOf(page, beside), level + 1 === state.depth, state, this.sibling, besideFrom, besideTo);
        }
      }
      if (at + 1 < count) to = nodeKey(page, at + 1);
      if (at > 0) from = nodeKey(page, at);
      number = childOf(page, at);
    }
    return { entries: 0, from, to: null };
  }

  /** Reads a page, and checks it if that has not been done; how many nodes it has. */
  private read(
    number: number,
    isLeaf: boolean,
    state: PageState,
    into: Buffer,
    from: Buffer,
    to: Buffer | null,
  ): number {
    const count = this.file.readHead(number, isLeaf, state, into, state.pageBytes);
    const isNew = number > this.since.lastPage || writerOf(into) > this.since.transaction;
    if (isNew || (this.checked[number >>> 3]! & (1 << (number & 7))) !== 0) return count;
    checkKeys(this.file.readPage(number, isLeaf, state), from, to);
    this.checked[number >>> 3]! |= 1 << (number & 7);
    return count;
  }

  /** The pages of a large value are freed with it: as many as their header says. */
  private checkValue(key: Buffer, count: number, state: PageState): void {
    const { page } = this;
    const at = lowerBound(page, 0, count, key, false);
    if (at === count || !nodeKey(page, at).equals(key)) return;
    const node = nodeAt(page, at);
    if (page.readUInt16LE(node + FLAGS) !== BIG_VALUE) return;
    const value = this.file.readPage(numberAt(page, 0), true, state).values[at]!;
    this.file.readValue(value, state);
  }
}

function checkKeys({ keys, isLeaf }: Page, from: Buffer, to: Buffer | null): void {
  // In a branch the first key is empty.
  const first = isLeaf ? 0 : 1;
  for (let n = first + 1; n < keys.length; n++) {
    if (keys[n - 1]!.compare(keys[n]!) >= 0) throw new PageError('its keys are out of order');
  }
  const [lowest, highest] = [keys[first], keys.at(-1)!];
  if (lowest === undefined) return;
  if (lowest.compare(from) < 0 || (to !== null && highest.compare(to) >= 0)) {
    throw new PageError('its keys are out of order');
  }
}
