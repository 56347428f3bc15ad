import { isIntact } from '../format/stored-form.js';
import type { Page } from './page-file.js';
import { PageError } from './page-layout.js';

const DAMAGED_ENTRY = 'an entry of what was read is damaged';

/** The keys between the two intact entries around damaged ones; null: no intact one follows. */
interface Gap {
  readonly from: Buffer;
  /** `from` is no entry's key: a damaged one may have been just that. */
  readonly isFromOpen: boolean;
  to: Buffer | null;
}

/**
 * Where the keys of damaged entries were. What a damaged key was before is not known, only that it lay between the
 * intact ones around it: what is looked for there may be what is damaged, also where nothing is found.
 */
export class DamagedGaps {
  private readonly gaps: Gap[] = [];
  private readonly leaves = new Set<number>();
  /** The last intact key of the walk, and whether damaged entries followed it. */
  private last: Buffer = Buffer.alloc(0);
  private isOpen = false;

  get size(): number {
    return this.gaps.length;
  }

  /** To be called with the keys of all entries in their order. */
  add(key: Buffer, isIntact: boolean): void {
    if (isIntact && this.isOpen) this.gaps.at(-1)!.to = key;
    if (!isIntact && !this.isOpen) this.gaps.push({ from: this.last, isFromOpen: false, to: null });
    this.isOpen = !isIntact;
    if (isIntact) this.last = key;
  }

  /**
   * To be called with a leaf in which every key is at least `low` and before `high`; null: no end. An entry whose value
   * lies on pages of its own counts as intact: all that is stored would have to be read. Throws PageError for damage
   * unless the page `isHeld`: another process may be using it again.
   */
  addLeaf(page: Page, low: Buffer, high: Buffer | null, isHeld: boolean): void {
    if (this.leaves.has(page.number)) return;
    let from = { from: low, isFromOpen: true };
    let isDamaged = false;
    for (const [n, key] of page.keys.entries()) {
      const { isBig, bytes } = page.values[n]!;
      if (isBig || isIntact(key, bytes)) {
        if (isDamaged) this.gaps.push({ ...from, to: key });
        isDamaged = false;
        from = { from: key, isFromOpen: false };
        continue;
      }
      if (!isHeld) throw new PageError(DAMAGED_ENTRY);
      isDamaged = true;
      this.leaves.add(page.number);
    }
    if (isDamaged) this.gaps.push({ ...from, to: high });
  }

  /** Throws PageError where nobody knows on which side of the key a damaged entry belongs. */
  check(key: Buffer): void {
    const isIn = this.gaps.some(({ from, isFromOpen, to }) => {
      const order = from.compare(key);
      return (order < 0 || (isFromOpen && order === 0)) && (to === null || key.compare(to) < 0);
    });
    if (isIn) throw new PageError(DAMAGED_ENTRY);
  }

  /** Throws PageError when a damaged entry may belong to the keys from `start` up to `end`. */
  checkRange(start: Buffer, end: Buffer): void {
    const isMet = this.gaps.some(({ from, to }) => from.compare(end) < 0 && (to === null || start.compare(to) < 0));
    if (isMet) throw new PageError(DAMAGED_ENTRY);
  }
}
