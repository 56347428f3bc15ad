import type { Alternative } from '../query/match/match.js';
import type { CollectionEntry, IndexEntry } from '../storage/keys/index-definition.js';
import {
  candidatePlans,
  geoPlan,
  indexPlan,
  MAX_PLAN_BRANCHES,
  partialPlans,
  scanWhole,
  serveFrom,
} from './index-plan.js';
import { joinRanges } from './key-ranges.js';
import { ALONE, isBounded, type Plan, type PlanQuery } from './plan.js';
import { cheapest, type Considered, type Sizes, costsOf } from './plan-cost.js';
import { mergesByKeys } from './sort-order.js';

/** A `$or` within a branch of a `$or` is looked at as well, but not deeper. */
const MAX_DEPTH = 2;
/** Most branches of one `$or` that are planned. */
const MAX_ALTERNATIVES = 64;

/**
 * Chooses how to read: by one index, equalities first, then one range or list, then the sort; or the branches of a
 * `$or` each by its own. Between several plans decides what each is expected to read.
 */
export function choosePlan(collection: CollectionEntry, query: PlanQuery, sizes: Sizes): Plan {
  return (
    hintedPlan(collection, query) ??
    cheapest(plansFor(collection, query, sizes), query, sizes) ??
    scanWhole(collection, query, false)
  );
}

/** All plans between which choosePlan chooses, with their costs. */
export function considerPlans(collection: CollectionEntry, query: PlanQuery, sizes: Sizes): Considered[] {
  const hinted = hintedPlan(collection, query);
  const plans = hinted === null ? plansFor(collection, query, sizes) : [hinted];
  return costsOf(plans.length === 0 ? [scanWhole(collection, query, false)] : plans, query, sizes);
}

function plansFor(collection: CollectionEntry, query: PlanQuery, sizes: Sizes): Plan[] {
  const singles = candidatePlans(collection, query);
  // Of plans between which nothing decides the first is taken.
  const unions = query.alternatives.length === 0 ? [] : unionPlans(collection, query, singles, sizes);
  const parts = partialPlans(collection, query, singles);
  if (unions.length + parts.length === 0) return singles;
  // Documents that are read in the wanted order need not be held to be sorted.
  const whole = singles.some(({ index }) => index === null) ? [] : [scanWhole(collection, query, false)];
  return [...unions, ...singles, ...parts, ...whole];
}

function hintedPlan(collection: CollectionEntry, query: PlanQuery): Plan | null {
  const { hint } = query;
  if (hint === undefined) return null;
  return 'natural' in hint ? scanWhole(collection, query, hint.natural === -1) : planBy(hint, query);
}

function planBy(index: IndexEntry, query: PlanQuery): Plan {
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
  sizes: Sizes,
  depth = 1,
): Plan[] {
  if (depth > MAX_DEPTH || (singles.length === 1 && singles[0]!.single)) return [];
  const several = query.alternatives.length > 1;
  const unions: Plan[] = [];
  for (const branches of query.alternatives) {
    if (branches.length > MAX_ALTERNATIVES) continue;
    const queries = branches.map((branch) => branchQuery(query, branch, several));
    const choices = choosePlans(collection, queries, sizes, depth);
    if (choices === null) continue;
    for (const choice of choices) {
      const union = unionOf(choice, query);
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
  sizes: Sizes,
  depth: number,
): Plan[][] | null {
  const least: Plan[] = [];
  let sorted: Plan[] | null = [];
  for (const query of queries) {
    const singles = candidatePlans(collection, query, true);
    const nested = query.alternatives.length > 0 ? unionPlans(collection, query, singles, sizes, depth + 1) : [];
    const bounded = [...singles, ...nested].filter((plan) => isBounded(plan) || isPartial(plan));
    // All of a branch is read, unless every one is in order.
    const best = cheapest(bounded, { ...query, limit: 0 }, sizes);
    if (best === null) return null;
    least.push(best);
    if (sorted === null) continue;
    const inOrder = cheapest(
      bounded.filter((plan) => plan.sorted),
      query,
      sizes,
    );
    if (inOrder === null) sorted = null;
    else sorted.push({ ...inOrder, fallback: null });
  }
  return sorted === null || least.every((plan) => plan.sorted) ? [least] : [least, sorted];
}

function isPartial({ index }: Plan): boolean {
  return index !== null && index.condition !== null;
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
  const ranges = flat.reduce((sum, branch) => sum + (branch.merges ? branch.ranges.length : 1), 0);
  if (ranges > MAX_PLAN_BRANCHES && !(sorted && query.sort.length > 0 && mergesByKeys(flat, query.sort))) return null;
  return {
    ...ALONE,
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
