import { type Meta, type Tree, PageError } from './page-layout.js';
import type { Page, PageFile } from './page-file.js';

/** Callbacks of a walk. */
export interface WalkVisitor {
  entry(key: Buffer, value: Buffer): void;
  /**
   * A page that is not what LMDB wrote; what lay below it, from the key `from` up to `to` (null: the end), is not
   * visited.
   */
  damage(page: number, reason: string, from: Buffer, to: Buffer | null): void;
}

interface Place {
  readonly page: number;
  readonly level: number;
  /** The transaction that wrote the page above, with which it writes each one below again: this one is no later. */
  readonly written: number;
  /** Every key below is at least this and lies before `to`; null: no end. */
  readonly from: Buffer;
  readonly to: Buffer | null;
}

const NO_KEY = Buffer.alloc(0);

/**
 * Visits all entries of a tree in the order of their keys, pausing after each page, and checks the pages: each once,
 * its kind by its depth, its keys in order and between those of the page above, and as many of everything as the tree's
 * record says.
 */
export function* walkPages(
  file: PageFile,
  meta: Meta,
  tree: Tree,
  used: PageSet,
  compare: (a: Buffer, b: Buffer) => number,
  visitor: WalkVisitor,
): Generator<void> {
  const met = { branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0 };
  let isWhole = true;
  const report = (place: Place, error: unknown): void => {
    if (!(error instanceof PageError)) throw error;
    isWhole = false;
    visitor.damage(place.page, error.message, place.from, place.to);
  };
  const top = { level: 1, written: meta.transaction, from: NO_KEY, to: null };
  const waiting: Place[] = tree.root === null ? [] : [{ page: tree.root, ...top }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    try {
      used.take(place.page, 1);
      const page = file.readPage(place.page, place.level === tree.depth, { ...meta, transaction: place.written });
      checkOrder(page, place, compare);
      if (page.isLeaf) {
        met.leafPages++;
        met.entries += page.keys.length;
        for (let n = 0; n < page.keys.length; n++) {
          const end = page.keys[n + 1] ?? place.to;
          try {
            const { value, first, pages } = file.readValue(page.values[n]!, meta);
            if (pages > 0) used.take(first, pages);
            met.overflowPages += pages;
            visitor.entry(page.keys[n]!, value);
          } catch (error) {
            report({ ...place, from: page.keys[n]!, to: end }, error);
          }
        }
      } else {
        met.branchPages++;
        const below = { level: place.level + 1, written: page.written };
        for (let n = page.children.length - 1; n >= 0; n--) {
          const from = n === 0 ? place.from : page.keys[n]!;
          waiting.push({ page: page.children[n]!, ...below, from, to: page.keys[n + 1] ?? place.to });
        }
      }
    } catch (error) {
      report(place, error);
    }
    yield;
  }
  if (!isWhole) return;
  for (const what of ['branchPages', 'leafPages', 'overflowPages', 'entries'] as const) {
    if (met[what] !== tree[what]) {
      visitor.damage(tree.root ?? 0, `its tree has ${met[what]} ${what} instead of ${tree[what]}`, NO_KEY, null);
    }
  }
}

/** In a branch the first key is empty: it stands for everything before the second. */
function checkOrder({ keys, isLeaf }: Page, { from, to }: Place, compare: (a: Buffer, b: Buffer) => number): void {
  for (let n = isLeaf ? 0 : 1; n < keys.length; n++) {
    const key = keys[n]!;
    const before = n === (isLeaf ? 0 : 1) ? null : keys[n - 1]!;
    if (before === null ? from.length > 0 && compare(key, from) < 0 : compare(key, before) <= 0) {
      throw new PageError('its keys are out of order');
    }
  }
  if (to !== null && compare(keys.at(-1)!, to) >= 0) throw new PageError('its keys are out of order');
}

const FREE_KEY_BYTES = 8;

/** The pages that were met. */
export class PageSet {
  private readonly bits: Uint8Array;
  /** How many there are. */
  size = 0;

  constructor(private readonly lastPage: number) {
    this.bits = new Uint8Array((lastPage >>> 3) + 1);
  }

  copy(): PageSet {
    const copy = new PageSet(this.lastPage);
    copy.bits.set(this.bits);
    copy.size = this.size;
    return copy;
  }

  has(page: number): boolean {
    return (this.bits[page >>> 3]! & (1 << (page & 7))) !== 0;
  }

  /** Throws PageError when a page is used twice, or does not exist. */
  take(first: number, pages: number): void {
    // The bits of a larger number would be those of another page.
    if (first < 2 || first + pages - 1 > this.lastPage) throw new PageError('there is no such page');
    for (let page = first; page < first + pages; page++) {
      if (this.has(page)) throw new PageError('it is used twice');
      this.bits[page >>> 3]! |= 1 << (page & 7);
      this.size++;
    }
  }
}

/** For the tree of free pages, whose keys are numbers in the machine's order. Throws PageError for any other key. */
export function compareFreeKeys(a: Buffer, b: Buffer): number {
  if (a.length !== FREE_KEY_BYTES || b.length !== FREE_KEY_BYTES) throw new PageError('it has a key of another tree');
  const difference = a.readBigUInt64LE(0) - b.readBigUInt64LE(0);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}
