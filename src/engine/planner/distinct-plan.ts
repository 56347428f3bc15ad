import type { CollectionEntry, IndexEntry } from '../storage/keys/index-definition.js';
import { indexPlan, serveFrom, usableIndexes } from './index-plan.js';
import type { Plan, PlanQuery } from './plan.js';
import { isNumericPath } from './sort-order.js';

/** A plan whose entries lie in the order of one field's values, so that one entry of each value has to be read. */
export interface DistinctPlan {
  readonly plan: Plan;
  readonly index: IndexEntry;
  /** Which field of the index has the values. */
  readonly field: number;
}

/**
 * How an index answers which values `path` has among the documents of the query: all conditions are equalities of the
 * fields in front of `path`, or one range of `path` itself, and no document has a list there. Null when none does.
 */
export function planDistinct(collection: CollectionEntry, query: PlanQuery, path: string): DistinctPlan | null {
  if (isNumericPath(path)) return null;
  for (const index of usableIndexes(collection, query)) {
    // Values that one collation takes for equal lie together in its keys.
    if (index.collation !== query.collation || (query.hint !== undefined && query.hint !== index)) continue;
    const plan = indexPlan(index, serveFrom(index.collation, query));
    const field = plan.bounds.points.length;
    if (!plan.exact || index.fields[field]?.path !== path) continue;
    if (plan.bounds.points.every((values) => values.length === 1)) return { plan, index, field };
  }
  return null;
}
