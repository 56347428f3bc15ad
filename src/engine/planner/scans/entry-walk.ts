import { damagedFile } from '../../storage/storage-error.js';
import { type PageState, PageError } from '../../storage/file/page-layout.js';
import type { PageRanges, RangePart, VisitValue } from '../../storage/file/page-ranges.js';
import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import type { Plan } from '../plan.js';

/** Pages read between two looks at the clock: some 10,000 entries, in a tenth of a millisecond. */
const CHUNK_PAGES = 128;

/** With so many ranges what they have together is remembered; a few are as soon looked through. */
const MIN_REMEMBERED_RANGES = 4;

/** Walks the entries in a plan's ranges by the pages of the file: to count them, or to see the ids in them. */
export class EntryWalk {
  /** Entries that the last chunk met. */
  met = 0;
  /** Pages that the last chunk read, at least one. */
  pages = 0;
  private at = 0;
  private next: Buffer | null = null;
  /** What was counted so far, and in the state of which transaction; null when it was several. */
  private counted = 0;
  private readIn: number | null | undefined;

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
    const { ranges } = this.plan;
    const isKept = visit === null && ranges.length >= MIN_REMEMBERED_RANGES;
    if (isKept && this.at === 0 && this.next === null) {
      const known = readPages(this.storage, (pages) => pages.recall(this.state(pages), ranges));
      if (known !== undefined) {
        this.at = ranges.length;
        this.met = known;
        this.pages = 1;
        return known;
      }
    }
    while (!this.finished && this.pages < CHUNK_PAGES) {
      const part = this.readPart(visit, CHUNK_PAGES - this.pages);
      this.met += part.entries;
      count += visit === null ? part.entries : part.accepted;
      this.pages += Math.max(part.pages, 1);
      this.next = part.next;
      if (part.next === null) this.at++;
    }
    this.counted += count;
    if (isKept && this.finished) this.keep();
    return count;
  }

  /** Remembers what was counted, unless something may have changed while it was. */
  private keep(): void {
    readPages(this.storage, (pages) => {
      const state = this.state(pages);
      if (this.readIn === state.transaction) pages.remember(state, this.plan.ranges, this.counted);
    });
  }

  private state(pages: PageRanges): PageState {
    return this.view?.pageState() ?? pages.readState();
  }

  private readPart(visit: VisitValue | null, mostPages: number): RangePart {
    const { start, end } = this.plan.ranges[this.at]!;
    return readPages(this.storage, (pages) => {
      const state = this.state(pages);
      if (this.readIn === undefined) this.readIn = state.transaction;
      else if (this.readIn !== state.transaction) this.readIn = null;
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
