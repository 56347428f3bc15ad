import type { Alternative } from '../query/match/match.js';
import type { CollectionEntry, IndexEntry } from '../storage/keys/index-definition.js';
import { joinRanges } from './key-ranges.js';
import {
  bestPlan,
  candidatePlans,
  geoPlan,
  indexPlan,
  isBounded,
  MAX_PLAN_BRANCHES,
  type Plan,
  type PlanQuery,
  type Probe,
  scanWhole,
  serveFrom,
} from './plan.js';

/** A `$or` within a branch of a `$or` is looked at as well, but not deeper. */
const MAX_DEPTH = 2;
/** So many branches of one `$or` are planned. */
const MAX_ALTERNATIVES = 64;

/**
 * Chooses how to read: by one index, equalities first, then one range or list, then the sort; or the branches of a
 * `$or` each by its own. Between several plans a short look at how many entries each would read decides.
 */
export function choosePlan(collection: CollectionEntry, query: PlanQuery, probe: Probe): Plan {
  if (query.hint !== undefined) {
    if (!('natural' in query.hint)) return hintedPlan(query.hint, query);
    return scanWhole(collection, query, query.hint.natural === -1);
  }
  const singles = candidatePlans(collection, query);
  // Of plans between which nothing decides the first is taken.
  const unions = query.alternatives.length > 0 ? unionPlans(collection, query, singles, probe) : [];
  return bestPlan([...unions, ...singles], query, probe) ?? scanWhole(collection, query, false);
}

function hintedPlan(index: IndexEntry, query: PlanQuery): Plan {
  const served = serveFrom(index.collation, query);
  return index.isGeo ? geoPlan(index, served) : indexPlan(index, served);
}

/**
 * For each `$or` of the query the plans that read its branches, each by its own index, and leave out the rest;
 * `singles` are the plans that serve the query by one index.
 */
function unionPlans(
  collection: CollectionEntry,
  query: PlanQuery,
  singles: readonly Plan[],
  probe: Probe,
  depth = 1,
): Plan[] {
  if (depth > MAX_DEPTH || (singles.length === 1 && singles[0]!.single)) return [];
  const several = query.alternatives.length > 1;
  const unions: Plan[] = [];
  for (const branches of query.alternatives) {
    if (branches.length > MAX_ALTERNATIVES) continue;
    const queries = branches.map((branch) => branchQuery(query, branch, several));
    const choices = choosePlans(collection, queries, probe, depth);
    if (choices === null) continue;
    for (const choice of choices) {
      const union = isBeaten(choice, singles) ? null : unionOf(choice, query);
      if (union !== null) unions.push(union);
    }
  }
  return unions;
}

function branchQuery(query: PlanQuery, branch: Alternative, several: boolean): PlanQuery {
  const unplanned = query.unplanned || branch.unplanned || several;
  return {
    conjuncts: [...query.conjuncts, ...branch.conjuncts],
    alternatives: branch.alternatives,
    unplanned,
    residual: unplanned || branch.alternatives.length > 0,
    sort: query.sort,
    collation: query.collation,
    limit: query.limit,
  };
}

/**
 * A plan for each branch, whichever reads least; and, where not all of these have the wanted order, one for each that
 * has. Null when a branch would have to read everything.
 */
function choosePlans(
  collection: CollectionEntry,
  queries: readonly PlanQuery[],
  probe: Probe,
  depth: number,
): Plan[][] | null {
  const least: Plan[] = [];
  let sorted: Plan[] | null = [];
  for (const query of queries) {
    const singles = candidatePlans(collection, query);
    const nested = query.alternatives.length > 0 ? unionPlans(collection, query, singles, probe, depth + 1) : [];
    const bounded = [...singles, ...nested].filter(isBounded);
    const best = bestPlan(bounded, query, probe);
    if (best === null) return null;
    least.push(best);
    if (sorted === null) continue;
    const inOrder = bestPlan(
      bounded.filter((plan) => plan.sorted),
      query,
      probe,
    );
    if (inOrder === null) sorted = null;
    else sorted.push(inOrder);
  }
  return sorted === null || least.every((plan) => plan.sorted) ? [least] : [least, sorted];
}

/** True if one index, with no fewer conditions, reads what all branches would read of it, as behind a cursor. */
function isBeaten(branches: readonly Plan[], singles: readonly Plan[]): boolean {
  return singles.some(
    (single) =>
      single.branches === null &&
      branches.every((branch) => branch.branches === null && branch.index === single.index) &&
      branches.some((branch) => boundFields(branch) <= boundFields(single)),
  );
}

function boundFields({ bounds }: Plan): number {
  return bounds.points.length + (bounds.range === null ? 0 : 1);
}

/**
 * The plan to count by. Where all branches of a union are ranges of one index in which each document stands once, their
 * ranges together, of which none has to be remembered; else the plan itself.
 */
export function countingPlan(plan: Plan): Plan {
  const [first, ...others] = plan.branches ?? [];
  if (first === undefined || !plan.exact) return plan;
  const { index } = first;
  const mayRepeat = index !== null && index.definition.multikey !== 0;
  if (mayRepeat || others.some((branch) => branch.index !== index)) return plan;
  if (plan.branches!.some((branch) => branch.single)) return plan;
  const ranges = joinRanges(plan.branches!.flatMap((branch) => branch.ranges));
  return { ...first, ranges, reverse: false, sorted: false, repeats: false };
}

function unionOf(branches: readonly Plan[], query: PlanQuery): Plan | null {
  const sorted = query.sort.length === 0 || branches.every((branch) => branch.sorted);
  const flat = branches.flatMap((branch) => branch.branches ?? [branch]);
  if (flat.length > MAX_PLAN_BRANCHES) return null;
  return {
    index: null,
    ranges: [],
    reverse: false,
    sorted,
    repeats: true,
    exact: branches.every((branch) => branch.exact),
    bounds: { points: [], range: null },
    single: false,
    branches: flat,
  };
}
