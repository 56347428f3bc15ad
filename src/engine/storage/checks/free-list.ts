import { type Meta, numberAt, PageError } from '../file/page-layout.js';
import type { PageSet } from '../file/walk-pages.js';

const NUMBER_BYTES = 8;
/** Beyond this a number of eight bytes is meant as negative: the length of a row of pages whose first one follows. */
const NEGATIVE_FROM = 2 ** 63;

/** What to do about a broken list: a copy gets a list of its own. */
export const REPAIR =
  'To repair it, stop what serves it and run "bsvc doctor --repair": it copies everything into a new file.';

/** The list of free pages, as its records say; a page in it that is in use is overwritten by the next writes. */
export class FreeList {
  private readonly records: (readonly [key: Buffer, value: Buffer])[] = [];

  constructor(
    private readonly meta: Meta,
    /** The pages that are known to be in use, those of the list itself included. */
    private readonly used: PageSet,
  ) {}

  readonly add = (key: Buffer, value: Buffer): void => {
    this.records.push([key, value]);
  };

  /** What is wrong with the list. To be called once. */
  problems(): string[] {
    const { meta, used, records } = this;
    const problems = new Set<string>();
    for (const [key, value] of records) {
      try {
        takeFreePages(key, value, meta, used);
      } catch (error) {
        if (!(error instanceof PageError)) throw error;
        problems.add(error.message);
      }
    }
    return [...problems];
  }

  /**
   * How many pages are neither in use nor free, after `problems` has found none in a walk that met no damage: LMDB
   * loses one now and then, which costs its room and nothing else.
   */
  get lostPages(): number {
    // The first two pages are not in any tree.
    return this.meta.lastPage - 1 - this.used.size;
  }
}

/**
 * Checks a record of free pages, of those that a transaction left, and takes its pages. Throws PageError for one that
 * LMDB has not written so, and when a page is in use or listed twice.
 */
function takeFreePages(key: Buffer, value: Buffer, meta: Meta, taken: PageSet): void {
  if (key.length !== NUMBER_BYTES || numberAt(key, 0) > meta.transaction) {
    throw new PageError('it lists pages for a transaction that never was');
  }
  const count = value.length < NUMBER_BYTES ? Infinity : numberAt(value, 0);
  if ((count + 1) * NUMBER_BYTES > value.length) throw new PageError('a list of free pages is cut short');
  let row = 1;
  for (let n = 1; n <= count; n++) {
    const number = numberAt(value, n * NUMBER_BYTES);
    // A place that was used up.
    if (number === 0) continue;
    if (number >= NEGATIVE_FROM) {
      row = Number(-value.readBigInt64LE(n * NUMBER_BYTES));
      if (row > meta.lastPage || n === count) throw new PageError('a row of free pages has an impossible length');
      continue;
    }
    if (number < 2 || number + row - 1 > meta.lastPage) throw new PageError('it lists a page that does not exist');
    taken.take(number, row);
    row = 1;
  }
  if (row !== 1) throw new PageError('a row of free pages has no beginning');
}
