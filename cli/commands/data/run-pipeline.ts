import type { App } from '../../../src/app.js';
import { operatorCaller } from '../../../src/features/access/operator-access.js';
import { aggregateDocuments, explainPipeline } from '../../../src/features/documents/read/aggregate-documents.js';
import { readEncoded } from '../../../src/features/documents/reply/encoded-reply.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import type { Project } from '../../../src/features/projects/project.js';
import type { Context } from '../../shell/context.js';
import type { Result } from '../../view/output.js';
import { readJsonText } from './one-document.js';
import { presentExplained } from './present-explained.js';

/** The results of a pipeline (`-` for standard input), or with `explain` how its first stages are read. */
export async function runPipeline(
  context: Context,
  { app, project, collection }: { app: App; project: Project; collection: Collection },
  { pipeline: text, includeDeleted, explain }: { pipeline: string; includeDeleted: boolean; explain: boolean },
): Promise<Result> {
  const pipeline = await readJsonText(context, text, 'The pipeline is');
  const options = { includeDeleted, signal: context.stop };
  const caller = operatorCaller(project);
  if (explain) {
    const explained = await explainPipeline(app, caller, collection.name, pipeline, options);
    return presentExplained(explained, 'for the stages behind');
  }
  const results = readEncoded(await aggregateDocuments(app, caller, collection.name, pipeline, options)) as unknown[];
  const indent = context.io.stdout.isTTY ? 2 : undefined;
  return {
    json: { items: results },
    untrusted: true,
    quiet: results.map((result) => JSON.stringify(result)),
    text: () => results.map((result) => JSON.stringify(result, null, indent)).join('\n'),
  };
}
