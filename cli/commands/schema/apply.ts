import { applyDeclared } from '../../../src/features/changes/apply-declared.js';
import { listCollections } from '../../../src/features/collections/list-collections.js';
import {
  dropsFields,
  listLoosenedBy,
  planSchema,
  presentSchemaChange,
  type SchemaChange,
} from '../../../src/features/collections/schema/plan-schema.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { argument, defineCommand, flag } from '../../shell/command.js';
import { confirmLosses, DROPPED_FIELDS } from '../../ask/confirm-losses.js';
import type { TextStyle } from '../../view/output.js';
import { readStructuredFile } from '../../formats/read-declaration-file.js';
import { readSchemaFile } from '../../formats/schema-file.js';

export default defineCommand({
  details:
    'Shows the difference and applies it; a second run changes nothing. Settings that the file leaves out stay; "rls": "off" disables row-level security. Collections, fields and indexes that its lists do not name stay, unless --prune drops them. Asks before it loosens access.',
  examples: [
    'bsvc schema apply schema.json --project shop --dry-run',
    'bsvc schema apply schema.json --project shop',
    'bsvc schema apply schema.yaml --project shop --prune --yes',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    file: argument('file', 'JSON or YAML file'),
    project: projectOption,
    dryRun: flag('--dry-run', 'only show the difference'),
    prune: flag('--prune', 'drop collections, fields and indexes that the file does not name'),
    forNewWrites: flag('--for-new-writes', 'apply new constraints to future writes only'),
  },
  async run(context, input) {
    const declared = readSchemaFile(await readStructuredFile(context, input.file), input.file);
    const { app, project } = await chooseProject(context, input.project);
    const changes = planSchema(await listCollections(app, project._id), declared, { prune: input.prune });
    const dropped = changes.filter(({ action }) => action === 'drop').map(({ collection }) => collection);
    if (!input.dryRun) {
      const drops = dropped.map((collection) => `${collection} with all documents`);
      await confirmLosses(context, input, { drops, loosens: listLoosenedBy(changes) }, project.name);
      await applyDeclared(app, project, changes, { forNewWrites: input.forNewWrites });
    }
    return {
      json: { changes: changes.map(presentSchemaChange), applied: !input.dryRun },
      quiet: changes.map(({ action, collection }) => `${action} ${collection}`),
      text: (view) => presentChanges(view, changes, input.dryRun),
    };
  },
});

function presentChanges({ paint }: TextStyle, changes: readonly SchemaChange[], dryRun: boolean): string {
  if (changes.length === 0) return 'Nothing to change: the collections are as the file declares them.';
  const signs = { add: paint.green('+'), change: paint.yellow('~'), drop: paint.red('-') };
  const lines = changes.flatMap((change) => [
    `${signs[change.action]} collection ${change.collection}`,
    ...(change.action === 'change' ? change.what.map((line) => `    ${line}`) : []),
  ]);
  const end = dryRun ? 'Nothing was changed (--dry-run).' : 'Done.';
  return [...lines, ...(dropsFields(changes) ? [DROPPED_FIELDS] : []), end].join('\n');
}
