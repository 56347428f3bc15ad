import { applySchema } from '../../../src/features/collections/schema/apply-schema.js';
import { listCollections } from '../../../src/features/collections/list-collections.js';
import {
  planSchema,
  presentSchemaChange,
  type SchemaChange,
} from '../../../src/features/collections/schema/plan-schema.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { argument, defineCommand, flag } from '../../shell/command.js';
import { confirmByName, yesOption } from '../../ask/confirm.js';
import type { View } from '../../shell/output.js';
import { readStructuredFile } from '../../formats/read-declaration-file.js';
import { readSchemaFile } from '../../formats/schema-file.js';

export default defineCommand({
  details:
    'Shows the difference and makes it so; a second run changes nothing. Collections that the file does not name stay, unless --prune drops them with their documents.',
  examples: [
    'bsvc schema apply schema.json --project shop --dry-run',
    'bsvc schema apply schema.json --project shop',
    'bsvc schema apply schema.yaml --project shop --prune --yes',
  ],
  audited: ({ dryRun }) => !dryRun,
  parameters: {
    file: argument('file', 'JSON or YAML file'),
    project: projectOption,
    dryRun: flag('--dry-run', 'only show the difference'),
    prune: flag('--prune', 'drop collections that the file does not name'),
    yes: yesOption,
  },
  async run(context, input) {
    const declared = readSchemaFile(await readStructuredFile(context, input.file));
    const { app, project } = await chooseProject(context, input.project);
    const changes = planSchema(await listCollections(app, project._id), declared, { prune: input.prune });
    const dropped = changes.filter(({ action }) => action === 'drop').map(({ collection }) => collection);
    if (!input.dryRun) {
      if (dropped.length > 0) {
        const what = `Drops ${dropped.join(', ')} of project ${project.name} with all documents.`;
        await confirmByName(context, input.yes, what, project.name);
      }
      await applySchema(app, project, changes);
    }
    return {
      json: { changes: changes.map(presentSchemaChange), applied: !input.dryRun },
      quiet: changes.map(({ action, collection }) => `${action} ${collection}`),
      text: (view) => presentChanges(view, changes, input.dryRun),
    };
  },
});

function presentChanges({ paint }: View, changes: readonly SchemaChange[], dryRun: boolean): string {
  if (changes.length === 0) return 'Nothing to change: the collections are as the file declares them.';
  const signs = { add: paint.green('+'), change: paint.yellow('~'), drop: paint.red('-') };
  const lines = changes.flatMap((change) => [
    `${signs[change.action]} collection ${change.collection}`,
    ...(change.action === 'change' ? change.what.map((line) => `    ${line}`) : []),
  ]);
  return [...lines, dryRun ? 'Nothing was changed (--dry-run).' : 'Done.'].join('\n');
}
