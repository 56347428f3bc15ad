import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import { EntryWalk, readPages } from './entry-walk.js';
import type { Plan } from '../plan.js';
import { countNext, type Scan } from './scan.js';
import { rangesInOneOrder, SharedEntries } from './shared-entries.js';

/** True if each branch of a union holds nothing but answers, each of them once, as entries of an index. */
export function isUnionOfEntries({ branches, exact }: Plan): boolean {
  return exact && branches !== null && branches.every(({ index, single }) => index !== null && !single);
}

interface Branch {
  readonly plan: Plan;
  readonly walk: EntryWalk;
  entries: number;
}

/**
 * Counts the documents of a union of entries: those of its branches together, which are counted by pages, less those
 * whose document an earlier branch has. How many these are is remembered until something under their pages is written.
 */
export class UnionCount {
  finished = false;
  /** How many entries the last chunk looked at, or pages of them. */
  lastRead = 0;
  private readonly branches: readonly Branch[];
  private at = 0;
  private shared: SharedEntries | null = null;
  private distinct: Scan | null = null;
  /** How many entries are shared, or how many documents distinct, so far. */
  private found = 0;
  /** The transaction in whose state everything was read; null when it was read in several. */
  private readIn: number | null | undefined;

  constructor(
    private readonly storage: Storage,
    readonly plan: Plan,
    private readonly view: View,
    /** Opens a scan of the branches that remembers the documents of all but the last. */
    private readonly openDistinct: (branches: readonly Plan[]) => Scan,
  ) {
    this.branches = plan.branches!.map((branch) => ({
      plan: branch,
      walk: new EntryWalk(storage, branch, view),
      entries: 0,
    }));
  }

  /**
   * Counts on for one chunk: 0 until the last one, which says how many. Throws StorageError DAMAGED as EntryWalk does.
   */
  countChunk(): number {
    return readPages(this.storage, () => {
      const { transaction } = this.view.pageState();
      if (this.readIn === undefined) this.readIn = transaction;
      else if (this.readIn !== transaction) this.readIn = null;
      return this.countOn();
    });
  }

  private countOn(): number {
    const branch = this.branches[this.at];
    if (branch !== undefined) {
      branch.entries += branch.walk.readChunk(null);
      this.lastRead = branch.walk.pages;
      if (branch.walk.finished) this.at++;
      return this.at < this.branches.length ? 0 : this.recall();
    }
    const { shared, distinct } = this;
    if (shared !== null) {
      this.found += shared.countChunk(this.view.pageState());
      this.lastRead = shared.pages;
      return shared.finished ? this.end(this.found) : 0;
    }
    this.found += countNext(distinct!);
    this.lastRead = distinct!.lastRead;
    return distinct!.finished ? this.end(this.entries() - this.found) : 0;
  }

  /** Ends with what is known, or opens what finds out how many entries are shared. */
  private recall(): number {
    const filled = this.branches.filter(({ entries }) => entries > 0).sort((a, b) => a.entries - b.entries);
    const plans = filled.map(({ plan }) => plan);
    if (plans.length < 2) return this.finish(0);
    const { pages } = this.storage.environment;
    const known = pages.recall(this.view.pageState(), this.ranges());
    if (known !== undefined) return this.finish(known);
    const ordered = rangesInOneOrder(plans);
    if (ordered !== null) this.shared = new SharedEntries(pages, ordered);
    // The most documents come last, as those are only looked for among the others.
    else this.distinct = this.openDistinct(plans);
    return 0;
  }

  private end(shared: number): number {
    const state = this.view.pageState();
    if (this.readIn === state.transaction) this.storage.environment.pages.remember(state, this.ranges(), shared);
    return this.finish(shared);
  }

  private finish(shared: number): number {
    this.finished = true;
    return Math.max(0, this.entries() - shared);
  }

  private entries(): number {
    return this.branches.reduce((sum, { entries }) => sum + entries, 0);
  }

  private ranges(): Plan['ranges'] {
    let ranges = rangesOf.get(this.plan);
    if (ranges === undefined) {
      ranges = this.plan.branches!.flatMap((branch) => branch.ranges);
      rangesOf.set(this.plan, ranges);
    }
    return ranges;
  }
}

/** Of all branches together, by the union: plans are asked about again. */
const rangesOf = new WeakMap<Plan, Plan['ranges']>();
