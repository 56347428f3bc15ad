import type { Doc } from '../codec/document.js';
import { showValue } from '../storage/catalog/duplicate-key.js';
import { isBounded, type Plan } from './plan.js';
import type { Considered } from './plan-cost.js';

/** A plan as MongoDB's `explain` shows it, outermost stage first. */
export function presentPlan(plan: Plan, { sort, limit, skip }: { sort: Doc; limit: number; skip: number }): Doc {
  let stage = accessStage(plan, sort);
  const { fallback } = plan;
  if (fallback !== null) {
    const other = presentPlan(fallback.plan, { sort, limit: 0, skip: 0 });
    stage = { stage: 'TRIAL', mostKeys: fallback.after, inputStages: [stage, other] };
  }
  if (Object.keys(sort).length > 0 && !plan.sorted) {
    stage = {
      stage: 'SORT',
      sortPattern: sort,
      ...(limit > 0 ? { limitAmount: limit + skip } : {}),
      inputStage: stage,
    };
  }
  if (skip > 0) stage = { stage: 'SKIP', skipAmount: skip, inputStage: stage };
  return limit > 0 ? { stage: 'LIMIT', limitAmount: limit, inputStage: stage } : stage;
}

function accessStage(plan: Plan, sort: Doc = {}): Doc {
  if (plan.branches !== null || plan.merges) return { stage: 'FETCH', inputStage: unionStage(plan, sort) };
  const direction = plan.reverse ? 'backward' : 'forward';
  const { index, bounds } = plan;
  if (index === null) {
    if (plan.single) return { stage: 'IDHACK' };
    if (bounds.points.length === 0 && bounds.range === null) return { stage: 'COLLSCAN', direction };
  }
  return { stage: 'FETCH', inputStage: indexStage(plan) };
}

/** The branches of a union, or the ranges of one index that are merged. */
function unionStage(plan: Plan, sort: Doc): Doc {
  const inputStages = (plan.branches ?? [plan]).map(indexStage);
  const merged = plan.sorted && Object.keys(sort).length > 0;
  return merged ? { stage: 'SORT_MERGE', sortPattern: sort, inputStages } : { stage: 'OR', inputStages };
}

/** A plan that was weighed, in a line: what it would read, and how much it is expected to be. */
export function presentConsidered({ plan, cost }: Considered): Doc {
  const indexes = (plan.branches ?? [plan]).map(({ index }) => index?.definition.name ?? '_id_');
  return {
    indexName: [...new Set(indexes)].join(', '),
    ...(plan.index === null ? {} : { keyPattern: plan.index.definition.key }),
    stage: plan.branches !== null ? 'OR' : plan.merges ? 'SORT_MERGE' : isBounded(plan) ? 'IXSCAN' : 'SCAN',
    sorted: plan.sorted,
    estimate: { entries: Math.round(cost.entries), reads: Math.round(cost.reads), worst: Math.round(cost.worst) },
  };
}

function indexStage(plan: Plan): Doc {
  const { index } = plan;
  const keyPattern = index === null ? { _id: 1 } : index.definition.key;
  return {
    stage: 'IXSCAN',
    keyPattern,
    indexName: index === null ? '_id_' : index.definition.name,
    isMultiKey: index !== null && index.definition.multikey !== 0,
    isUnique: index === null || index.definition.unique,
    isSparse: index?.definition.sparse === true,
    isPartial: index?.definition.partialFilterExpression !== undefined,
    direction: plan.reverse ? 'backward' : 'forward',
    indexBounds: presentBounds(plan, Object.keys(keyPattern)),
  };
}

/** One entry of each value is read. */
export function presentDistinctPlan(plan: Plan): Doc {
  return { stage: 'FETCH', inputStage: { ...indexStage(plan), stage: 'DISTINCT_SCAN' } };
}

/** A covered count reads no documents. */
export function presentCountPlan(plan: Plan): Doc {
  const stage = accessStage(plan);
  if (plan.branches !== null && plan.exact) return { stage: 'COUNT', inputStage: stage['inputStage'] };
  if (!plan.exact || stage['stage'] !== 'FETCH') return { stage: 'COUNT', inputStage: stage };
  return { stage: 'COUNT', inputStage: { ...(stage['inputStage'] as Doc), stage: 'COUNT_SCAN' } };
}

function presentBounds(plan: Plan, paths: readonly string[]): Doc {
  const { bounds } = plan;
  const shown: Doc = {};
  for (const [n, path] of paths.entries()) {
    const points = bounds.points[n];
    if (points !== undefined) {
      shown[path] = points.map((value) => `[${showValue(value)}, ${showValue(value)}]`);
    } else if (n === bounds.points.length && bounds.range?.byPrefix === true) {
      const { text, pattern, options } = bounds.range.bounds.prefix!;
      const like = `/${pattern}/${options}`;
      shown[path] = [`[${showValue(text)}, ${showValue(text)}...]`, `[${like}, ${like}]`];
    } else if (bounds.range?.bounds.region != null) {
      shown[path] = [`${String(plan.ranges.length)} ranges of cells`];
    } else if (n === bounds.points.length && bounds.range !== null) {
      const { lower, upper } = bounds.range.bounds;
      const top = bounds.range.oneSided && lower !== null ? null : upper;
      shown[path] = [
        `${lower?.inclusive === true ? '[' : '('}${lower === null ? '-inf' : showValue(lower.value)}, ` +
          `${top === null ? 'inf' : showValue(top.value)}${top?.inclusive === true ? ']' : ')'}`,
      ];
    } else {
      shown[path] = ['[MinKey, MaxKey]'];
    }
  }
  return shown;
}
