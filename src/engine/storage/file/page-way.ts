import type { Branch } from './branch-pages.js';
import { type Page, PageError, type PageState } from './page-file.js';
import { nodeKey } from './page-nodes.js';

const NO_KEY = Buffer.alloc(0);

/** The branches on the way to a leaf from the root on, which child of each lies on it, and the leaf. */
export interface Way {
  readonly state: PageState;
  readonly branches: Branch[];
  readonly at: number[];
  leaf: number;
}

/** One bit a page. Later pages have been written since: they count as in it. */
export class PageBits {
  private readonly bits: Uint8Array;

  constructor(private readonly lastPage: number) {
    this.bits = new Uint8Array((lastPage >>> 3) + 1);
  }

  has(page: number): boolean {
    return page > this.lastPage || (this.bits[page >>> 3]! & (1 << (page & 7))) !== 0;
  }

  add(page: number): void {
    if (page <= this.lastPage) this.bits[page >>> 3]! |= 1 << (page & 7);
  }

  remove(page: number): void {
    if (page <= this.lastPage) this.bits[page >>> 3]! &= ~(1 << (page & 7));
  }
}

/** Every key of what is the child of the way's branch before `level` is at least this one. */
export function lowKey({ branches, at }: Way, level: number): Buffer {
  for (let n = level - 1; n >= 0; n--) if (at[n]! > 0) return nodeKey(branches[n]!.bytes, at[n]!);
  return NO_KEY;
}

/** As `lowKey`: every key lies before this one; null: there is no end. */
export function highKey({ branches, at }: Way, level: number): Buffer | null {
  for (let n = level - 1; n >= 0; n--) {
    if (at[n]! + 1 < branches[n]!.nodes) return nodeKey(branches[n]!.bytes, at[n]! + 1);
  }
  return null;
}

/** Throws PageError when the keys of a page are out of order, or do not lie between those of the page above. */
export function checkKeys({ keys, isLeaf }: Page, from: Buffer, to: Buffer | null): void {
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
