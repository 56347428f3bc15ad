import { operatorCaller } from '../../../src/features/access/operator-caller.js';
import { aggregateDocuments, explainPipeline } from '../../../src/features/documents/read/aggregate-documents.js';
import type { EncodedReply } from '../../../src/features/documents/read/stored-documents.js';
import { argument, defineCommand, flag } from '../../shell/command.js';
import { presentExplained } from './present-explained.js';
import { chooseTarget, readJsonText, targetParameters } from './one-document.js';

export default defineCommand({
  details: 'Stages and operators are those of the REST API. One result per line; at a terminal, indented.',
  examples: [
    'bsvc data aggregate posts \'[{"$group":{"_id":"$author","posts":{"$sum":1}}}]\' --project shop',
    'bsvc data aggregate posts - --project shop --quiet < pipeline.json',
    'bsvc data aggregate posts - --project shop --explain < pipeline.json',
  ],
  parameters: {
    collection: targetParameters.collection,
    pipeline: argument('pipeline', 'stages as a JSON array; - for standard input'),
    project: targetParameters.project,
    includeDeleted: flag('--include-deleted', 'over the documents in the trash too'),
    explain: flag('--explain', 'tell how the first stages are read: by which index, and past how many documents'),
  },
  async run(context, input) {
    const pipeline = await readJsonText(context, input.pipeline, 'The pipeline is');
    const { app, project, target } = await chooseTarget(context, input);
    const options = { includeDeleted: input.includeDeleted, signal: context.stop };
    if (input.explain) {
      const { name } = target.collection;
      return presentExplained(
        await explainPipeline(app, operatorCaller(project), name, pipeline, options),
        'for the stages behind',
      );
    }
    const reply = await aggregateDocuments(app, operatorCaller(project), target.collection.name, pipeline, options);
    const results = readResults(reply);
    const indent = context.io.stdout.isTTY ? 2 : undefined;
    return {
      json: results,
      quiet: results.map((result) => JSON.stringify(result)),
      text: () => results.map((result) => JSON.stringify(result, null, indent)).join('\n'),
    };
  },
});

/** The results as objects: a reply is JSON whose bytes stand as characters. */
function readResults(reply: EncodedReply): unknown[] {
  if (typeof reply === 'string') return JSON.parse(Buffer.from(reply, 'latin1').toString()) as unknown[];
  try {
    const parts = [...reply.parts].map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part));
    return JSON.parse(Buffer.concat(parts).toString()) as unknown[];
  } finally {
    reply.release();
  }
}
