import { applyDeclared } from '../../src/features/changes/apply-declared.js';
import { listCollections } from '../../src/features/collections/list-collections.js';
import {
  dropsFields,
  listLoosenedBy,
  planSchema,
  presentSchemaChange,
  type SchemaChange,
} from '../../src/features/collections/schema/plan-schema.js';
import { chooseProject, projectOption } from '../ask/choose-project.js';
import { argument, defineCommand, flag, option } from '../shell/command.js';
import { confirmLosses, DROPPED_FIELDS } from '../ask/confirm-losses.js';
import type { TextStyle } from '../view/output.js';
import { readStructuredFile, readCollections } from '../formats/read-declaration-file.js';
import { invalid } from '../../src/errors.js';
import {
  SCHEMA_FORMAT,
  type CollectionDeclaration,
  type SchemaFile,
  declareCollection,
} from '../../src/features/collections/schema/collection-declaration.js';
import { replaceFile } from '../formats/replace-file.js';
import { countOf } from '../view/present-amount.js';
import { resolveOutput } from '../shell/resolve-output.js';

const apply = defineCommand({
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

/** Checks form and version of the schema file `name`. 400 names what is wrong. */
function readSchemaFile(value: unknown, name: string): CollectionDeclaration[] {
  const file = value as Partial<SchemaFile> | null;
  if (typeof file !== 'object' || file === null || file.format !== SCHEMA_FORMAT || !Array.isArray(file.collections)) {
    throw invalid(
      'INVALID_FILE',
      `Not a schema file: it must be an object with "format": "${SCHEMA_FORMAT}" and "collections". "bsvc schema export" writes one.`,
    );
  }
  return readCollections(file.collections, `${name}: collections`);
}

const exportAll = defineCommand({
  details: 'Without --out, writes to standard output. "bsvc schema apply" takes it, in this or another project.',
  examples: [
    'bsvc schema export --project shop --out schema.json',
    'bsvc schema export --project shop | jq .collections',
  ],
  parameters: {
    project: projectOption,
    out: option('--out <file>', 'file to write'),
  },
  async run(context, { project: named, out }) {
    const path = out === undefined ? null : await resolveOutput(context, out);
    const { app, project } = await chooseProject(context, named);
    const collections = (await listCollections(app, project._id)).map(declareCollection);
    const file: SchemaFile = { format: SCHEMA_FORMAT, collections };
    const text = `${JSON.stringify(file, null, 2)}\n`;
    if (path === null || out === undefined) return { json: file, quiet: text, text: () => text };
    // A schema shows how a project is guarded: like every other file of its data it is its owner's, whichever mode the
    // file had.
    await replaceFile(path, text);
    return {
      json: { file: out, collections: collections.length },
      quiet: out,
      text: () => `Wrote ${countOf(collections.length, 'collection')} to ${out}.`,
    };
  },
});

export default { apply, export: exportAll };
