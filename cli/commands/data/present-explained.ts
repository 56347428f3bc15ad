import type { ExplainedList } from '../../../src/features/documents/read/list-documents.js';

/** What runs of a plan, from the database's names of its stages. */
const STEPS: Readonly<Record<string, string>> = {
  SORT: 'sorted after reading',
  SORT_MERGE: 'several ranges merged in the wanted order',
  OR: 'several indexes, one after the other',
  TRIAL: 'given up for another plan when it reads too much',
  DISTINCT_SCAN: 'one document of each value',
};

/** A plan in words: by which index, how, and past how many documents. `purpose` says what those found are for. */
export function presentExplained(explained: ExplainedList, purpose: string) {
  const { indexes, examined, returned, plan } = explained;
  const by = indexes.length === 0 ? 'no index: every document is looked at' : `by ${indexes.join(', ')}`;
  const stages = stagesOf(plan);
  const steps = Object.keys(STEPS).filter((stage) => stages.includes(stage));
  return {
    json: explained,
    quiet: indexes,
    text: () =>
      [by, ...steps.map((stage) => STEPS[stage]!), `${examined} documents looked at for ${returned} ${purpose}`].join(
        '\n',
      ),
  };
}

function stagesOf(plan: unknown): string[] {
  if (typeof plan !== 'object' || plan === null) return [];
  const { stage } = plan as { stage?: unknown };
  return [...(typeof stage === 'string' ? [stage] : []), ...Object.values(plan).flatMap(stagesOf)];
}
