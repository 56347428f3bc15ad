import type { Doc } from '../../codec/document.js';
import { openBudget } from '../../pipeline/budget.js';
import { compilePipeline, type PipelineOptions } from '../../pipeline/compile.js';
import type { OpenOptions, RunEnvironment } from '../../pipeline/stage.js';
import { compileFilter } from '../../query/match/match.js';
import { compileSort } from '../../query/sort.js';

export type Collections = Readonly<Record<string, readonly Doc[]>>;

/** Collections in memory, read the way the engine's commands read theirs; `opened` notes every request. */
export function openCollections(
  collections: Collections,
  environment: Partial<RunEnvironment> = {},
  batchSize = 7,
): RunEnvironment & { opened: { collection: string; options: OpenOptions }[] } {
  const opened: { collection: string; options: OpenOptions }[] = [];
  return {
    budget: environment.budget ?? openBudget(),
    opened,
    async *open(collection, options) {
      opened.push({ collection, options });
      const filter = compileFilter(options.filter ?? {});
      let docs = (collections[collection] ?? []).filter((doc) => filter.matches(doc));
      if (options.sort !== undefined) docs = docs.sort(compileSort(options.sort).compare);
      docs = docs.slice(options.skip ?? 0);
      if (options.limit !== undefined) docs = docs.slice(0, options.limit);
      for (let i = 0; i < docs.length; i += batchSize) {
        await Promise.resolve();
        yield docs.slice(i, i + batchSize);
      }
    },
  };
}

/** Runs a whole aggregation over collections in memory. */
export async function aggregate(
  collections: Collections,
  collection: string,
  stages: unknown,
  options: PipelineOptions & { environment?: PipelineOptions['environment'] } = {},
  run = openCollections(collections),
): Promise<Doc[]> {
  const pipeline = compilePipeline(stages, options);
  const { filter, sort, skip, limit } = pipeline.leading;
  const source = pipeline.startsAlone
    ? run.open('', {})
    : run.open(collection, {
        ...(filter === null ? {} : { filter }),
        ...(sort === null ? {} : { sort }),
        ...(limit === null ? {} : { limit }),
        skip,
      });
  const docs: Doc[] = [];
  for await (const batch of pipeline.run(source, run)) docs.push(...batch);
  return docs;
}
