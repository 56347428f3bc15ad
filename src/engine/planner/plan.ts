import type { Alternative } from '../query/match/match.js';
import type { Collation } from '../query/collation/collation.js';
import type { SortPart } from '../query/sort.js';
import type { IndexEntry } from '../storage/keys/index-definition.js';
import type { KeyRange, SpaceBounds } from './key-ranges.js';

/** The entries to read and their order. A plan may yield more than the filter wants, never less. */
export interface Plan {
  /** Null: the documents themselves, in the order of `_id`. */
  readonly index: IndexEntry | null;
  readonly ranges: readonly KeyRange[];
  readonly reverse: boolean;
  /** The documents come in the order of the requested sort. */
  readonly sorted: boolean;
  /** A document may come more than once. */
  readonly repeats: boolean;
  /** Every entry of the ranges is an answer: counting them needs no documents. */
  readonly exact: boolean;
  readonly bounds: SpaceBounds;
  /** At most one document can be in the ranges: the start of the only one is its key. */
  readonly single: boolean;
  /**
   * Instead of ranges of its own: plans whose documents together are these. When `sorted`, each of them is and they are
   * to be merged, otherwise they are read one after the other.
   */
  readonly branches: readonly Plan[] | null;
  /** Its ranges are read side by side: each is in the wanted order although one behind the other they are not. */
  readonly merges: boolean;
  /** To be read instead when this one, which may end early, does not. */
  readonly fallback: Fallback | null;
}

/** What to do when a plan turns out to be worse than another one is for certain. */
export interface Fallback {
  readonly plan: Plan;
  /** Entries that the first plan may look at. */
  readonly after: number;
  /** Documents wanted in all. */
  readonly most: number;
}

/** A plan that is neither made of others nor replaced by one. */
export const ALONE: Pick<Plan, 'branches' | 'merges' | 'fallback'> = { branches: null, merges: false, fallback: null };

export interface PlanQuery extends Alternative {
  /** True when the conjuncts are not the whole filter. */
  residual: boolean;
  sort: readonly SortPart[];
  /** By which the text in conjuncts is folded, and by which the sort compares; null: the simple one. */
  collation: Collation | null;
  limit: number;
  /** An index the caller insists on; `natural` is a scan of the collection in the given direction. */
  hint?: IndexEntry | { natural: 1 | -1 } | undefined;
}

/** True if the plan leaves out what the filter cannot want, instead of reading everything. */
export function isBounded({ branches, bounds }: Plan): boolean {
  return branches !== null || bounds.points.length > 0 || bounds.range !== null;
}
