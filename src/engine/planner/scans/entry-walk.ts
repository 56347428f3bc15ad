import { damagedFile } from '../../storage/damage.js';
import { PageError } from '../../storage/file/page-file.js';
import type { PageRanges, RangePart, VisitValue } from '../../storage/file/page-ranges.js';
import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import type { Plan } from '../plan.js';

/** Pages read between two looks at the clock: some 10,000 entries, in a tenth of a millisecond. */
const CHUNK_PAGES = 128;

/** Walks the entries in a plan's ranges by the pages of the file: to count them, or to see the ids in them. */
export class EntryWalk {
  /** Entries that the last chunk met. */
  met = 0;
  /** Pages that the last chunk read, at least one. */
  pages = 0;
  private at = 0;
  private next: Buffer | null = null;

  constructor(
    private readonly storage: Storage,
    private readonly plan: Plan,
    private readonly view: View | null,
  ) {}

  get finished(): boolean {
    return this.at >= this.plan.ranges.length;
  }

  /**
   * Walks on for one chunk and returns how many entries there were, or for how many of them `visit` said true. Throws
   * StorageError DAMAGED at a page that LMDB has not written so.
   */
  readChunk(visit: VisitValue | null): number {
    let count = 0;
    this.met = 0;
    this.pages = 0;
    while (!this.finished && this.pages < CHUNK_PAGES) {
      const part = this.readPart(visit, CHUNK_PAGES - this.pages);
      this.met += part.entries;
      count += visit === null ? part.entries : part.accepted;
      this.pages += Math.max(part.pages, 1);
      this.next = part.next;
      if (part.next === null) this.at++;
    }
    return count;
  }

  private readPart(visit: VisitValue | null, mostPages: number): RangePart {
    const { start, end } = this.plan.ranges[this.at]!;
    return readPages(this.storage, (pages) => {
      const state = this.view?.pageState() ?? pages.readState();
      return pages.read(state, this.next ?? start, end, mostPages, visit);
    });
  }
}

/** Returns what `read` returns; a page that LMDB has not written so is a StorageError DAMAGED. */
export function readPages<T>({ environment }: Storage, read: (pages: PageRanges) => T): T {
  try {
    return read(environment.pages);
  } catch (error) {
    if (!(error instanceof PageError)) throw error;
    throw damagedFile(environment.path, error.message, { cause: error });
  }
}
