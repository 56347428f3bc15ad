import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import type { Plan } from '../plan.js';
import { readPages } from './entry-walk.js';
import type { ScanPosition } from './scan.js';

/** Pages read between two looks at the clock. */
const CHUNK_PAGES = 128;
/** Fewer entries are stepped over one by one. */
const FEW_ENTRIES = 64;

/** True when the first `skip` entries of a plan can be left out by counting them. */
export function skipsEntries({ exact, branches, merges, single, fallback }: Plan, skip: number): boolean {
  return skip >= FEW_ENTRIES && exact && branches === null && !merges && !single && fallback === null;
}

/** Finds the place behind the first entries of a plan: pages tell how many they hold, and no entry is looked at. */
export class EntrySkip {
  /** Pages that the last chunk read, at least one. */
  pages = 1;
  private at = 0;
  private next: Buffer | null = null;
  /** Entries that were counted in the range. */
  private counted = 0;

  constructor(
    private readonly storage: Storage,
    private readonly plan: Plan,
    private readonly view: View,
    /** Entries, in the order in which the plan reads them. */
    private left: number,
  ) {}

  /** Counts on for one chunk; the place, or null when there is more to count. Throws DAMAGED as EntryWalk does. */
  readChunk(): ScanPosition | null {
    const { storage, plan, view } = this;
    return readPages(storage, (file) => {
      const state = view.pageState();
      for (this.pages = 0; this.pages < CHUNK_PAGES;) {
        const range = plan.ranges[this.at];
        if (range === undefined || this.left === 0) return { at: this.at, last: null };
        const part = file.read(state, this.next ?? range.start, range.end, CHUNK_PAGES - this.pages, null);
        this.pages += Math.max(part.pages, 1);
        this.counted += part.entries;
        this.next = part.next;
        // Backwards it takes the whole range to know how many come before.
        if (part.next !== null && (plan.reverse || this.counted < this.left)) continue;
        if (this.counted > this.left || part.next !== null) {
          const place = plan.reverse ? this.counted - this.left : this.left - 1;
          const last = file.keyAt(state, range.start, range.end, place);
          return last === null ? { at: this.at + 1, last } : { at: this.at, last };
        }
        this.left -= this.counted;
        this.counted = 0;
        this.at++;
      }
      return null;
    });
  }
}
