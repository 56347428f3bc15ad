import type { Document } from 'bson';

/** How a list or a pipeline would be read, in the database's own form, and what was looked at for it. */
export interface ExplainedList {
  /** The indexes that it uses; none: every document is looked at. */
  indexes: string[];
  /** Documents that were looked at, and those that were found or handed to the stages of a pipeline. */
  examined: number;
  returned: number;
  plan: unknown;
}

interface Told {
  queryPlanner: { winningPlan: unknown };
  executionStats: { totalDocsExamined: number; nReturned: number };
}

/** What the database's explain says, the same for a list and for the first stages of a pipeline. */
export function readExplained(told: Document): ExplainedList {
  const { stages } = told as { stages?: { $cursor?: Told }[] };
  const { queryPlanner, executionStats } = stages?.[0]?.$cursor ?? (told as Told);
  return {
    indexes: [...new Set(namesOfIndexes(queryPlanner.winningPlan))],
    examined: executionStats.totalDocsExamined,
    returned: executionStats.nReturned,
    plan: queryPlanner.winningPlan,
  };
}

function namesOfIndexes(plan: unknown): string[] {
  if (typeof plan !== 'object' || plan === null) return [];
  const { indexName } = plan as { indexName?: unknown };
  const below = Object.values(plan).flatMap(namesOfIndexes);
  return typeof indexName === 'string' ? [indexName, ...below] : below;
}
