import { isBounded, type Plan, type PlanQuery } from './plan.js';

/** The sizes that costs are made of; all but exact for what has few entries, and near for the rest. */
export interface Sizes {
  /** About how many entries the ranges of a plan without branches have. */
  entriesOf(plan: Plan): number;
  /** The bytes that a document has on average. */
  documentBytes(): number;
}

/** What a plan is expected to read of entries and documents before it has what is wanted, and at worst. */
export interface Cost {
  /** In all its ranges. */
  readonly entries: number;
  readonly reads: number;
  readonly worst: number;
}

/** A plan with what it costs. */
export interface Considered {
  readonly plan: Plan;
  readonly cost: Cost;
}

/** A document that has to be sorted costs so much more. */
const SORTING = 0.3;
/** A document that is met where it is stored costs so much less than one that an entry leads to. */
const IN_PLACE = 0.4;
/** A sort that would hold more bytes is refused by the engine, so it is not begun where there is another way. */
const MAX_SORT_BYTES = 80 * 1024 * 1024;

/**
 * The plan that is expected to read least. Where that one may turn out to be long, since what it looks for can stand at
 * the end of its order, another that is short for certain takes over: together they read at most twice what it does.
 */
export function cheapest(plans: readonly Plan[], query: PlanQuery, sizes: Sizes): Plan | null {
  const [first, ...others] = plans;
  if (first === undefined) return null;
  if (others.length === 0) return first;
  // Reading little but answers, in the wanted order, cannot be beaten.
  const mostRanges = mostRangesFor(query.limit);
  const best = plans.find((plan) => readsOnlyAnswers(plan) && rangesOf(plan) <= mostRanges);
  return best ?? chooseByCost(costsOf(plans, query, sizes), query, sizes);
}

/** Ranges that are read side by side without asking whether there is something better. */
export function mostRangesFor(limit: number): number {
  return limit === 0 ? Infinity : limit + FEW_RANGES;
}

/** Finding out whether there is something better reads about as much of so many ranges as reading them does. */
const FEW_RANGES = 100;

function readsOnlyAnswers(plan: Plan): boolean {
  return plan.exact && plan.sorted && isBounded(plan);
}

/** Each plan with its cost. */
export function costsOf(plans: readonly Plan[], query: PlanQuery, sizes: Sizes): Considered[] {
  const counts = plans.map((plan) => entriesOf(plan, sizes));
  // No plan reads fewer entries than there are answers.
  const answers = Math.max(1, Math.min(...counts));
  return plans.map((plan, n) => ({ plan, cost: costOf(plan, counts[n]!, answers, query) }));
}

function costOf(plan: Plan, entries: number, answers: number, { limit, sort }: PlanQuery): Cost {
  const ends = limit > 0 && (plan.sorted || sort.length === 0);
  if (!ends) {
    const each = (plan.sorted ? 1 : 1 + SORTING) - (plan.index === null && !isBounded(plan) ? IN_PLACE : 0);
    const all = entries * each;
    return { entries, reads: all, worst: all };
  }
  // Of ranges that are read side by side each has to show its first.
  const sides = plan.merges || plan.branches !== null ? rangesOf(plan) : 0;
  const found = Math.min(limit, entries) + sides;
  if (plan.exact) return { entries, reads: found, worst: found };
  return { entries, reads: Math.min((limit * entries) / answers, entries) + sides, worst: entries + sides };
}

function chooseByCost(considered: readonly Considered[], query: PlanQuery, sizes: Sizes): Plan {
  const fitting = considered.filter(({ plan, cost }) => fitsSort(plan, cost, query, sizes));
  const those = fitting.length > 0 ? fitting : considered;
  const best = least(those, ({ cost }) => cost.reads);
  const sure = least(those, ({ cost }) => cost.worst);
  if (best.plan === sure.plan || best.cost.worst <= sure.cost.worst * 2) return best.plan;
  // Nearly as good, and sure.
  if (sure.cost.worst <= best.cost.reads * 1.5) return sure.plan;
  return { ...best.plan, fallback: { plan: sure.plan, after: Math.ceil(sure.cost.worst), most: query.limit } };
}

function least(considered: readonly Considered[], sizeOf: (one: Considered) => number): Considered {
  return considered.reduce((best, one) => (sizeOf(one) < sizeOf(best) ? one : best));
}

function fitsSort(plan: Plan, { entries }: Cost, { limit, sort }: PlanQuery, sizes: Sizes): boolean {
  if (plan.sorted || sort.length === 0) return true;
  const kept = limit > 0 ? Math.min(entries, limit * 2) : entries;
  return kept < 1000 || kept * sizes.documentBytes() < MAX_SORT_BYTES;
}

function entriesOf(plan: Plan, sizes: Sizes): number {
  if (plan.branches === null) return plan.single ? 1 : sizes.entriesOf(plan);
  return plan.branches.reduce((sum, branch) => sum + entriesOf(branch, sizes), 0);
}

/** How many ranges of a plan are read side by side. */
export function rangesOf({ branches, merges, ranges }: Plan): number {
  if (branches === null) return merges ? ranges.length : 1;
  return branches.reduce((sum, branch) => sum + rangesOf(branch), 0);
}
