import { operatorCaller } from '../../../src/features/access/operator-access.js';
import { readOperations } from '../../../src/features/documents/batch/batch-routes.js';
import { runBatch, tryBatch } from '../../../src/features/documents/batch/run-batch.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { argument, flag } from '../../shell/command.js';
import { readJsonText } from './one-document.js';

export default defineProjectCommand({
  details:
    'In their order, each seeing those before it: {"op":"insert|update|remove|recover","collection":…,"id":…,"body":…,"ifMatch":…}, up to 100. Needs the embedded engine.',
  examples: [
    'bsvc data batch \'[{"op":"insert","collection":"posts","body":{"title":"Hello"}}]\' --project shop',
    'bsvc data batch - --project shop --dry-run < operations.json',
  ],
  audited: ({ dryRun }) => !dryRun,
  parameters: {
    operations: { ...argument('operations', 'operations as a JSON array; - for standard input'), isContent: true },
    dryRun: flag('--dry-run', 'only tell whether they would be carried out'),
  },
  async run(context, { app, project, operations: text, dryRun }) {
    const { operations } = readOperations({ operations: await readJsonText(context, text, 'The operations are') });
    const caller = operatorCaller(project);
    if (dryRun) {
      await tryBatch(app, caller, operations);
      const count = operations.length;
      return { json: { operations: count }, quiet: count, text: () => 'They would all be carried out.' };
    }
    const results = await runBatch(app, caller, operations, null);
    const rows = results.map(({ id }, at) => [operations[at]!.op, operations[at]!.collection, id]);
    return {
      json: { results },
      quiet: results.map(({ id }) => id),
      text: (view) => view.table(['operation', 'collection', 'document'], rows),
    };
  },
});
