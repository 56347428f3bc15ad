import type { App } from '../../../src/app.js';
import { forbidden, invalid } from '../../../src/errors.js';
import { operatorCaller } from '../../../src/features/access/operator-access.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import { requireWriteTarget, type WriteTarget } from '../../../src/features/documents/write/write-target.js';
import type { Project } from '../../../src/features/projects/project.js';
import { readTextStream } from '../../../src/text.js';
import { chooseCollection, collectionArgument, projectOption, defineProjectCommand } from '../../ask/choose.js';
import { MAX_ENTRY_BYTES } from '../../formats/entry.js';
import { argument, defineCommandOn, optionalArgument, flag, option } from '../../shell/command.js';
import type { Context } from '../../shell/context.js';
import type { Result } from '../../view/output.js';
import { parseBulkQuery, type BulkQuery } from '../../../src/features/documents/query/parse-bulk-query.js';
import { UsageError } from '../../view/exit.js';
import { insertDocument } from '../../../src/features/documents/write/insert-document.js';
import {
  countWhatMatches,
  updateMatching,
  removeMatching,
} from '../../../src/features/documents/bulk/write-matching.js';
import { readIfMatch } from '../../../src/features/documents/write/if-match.js';
import { updateDocument } from '../../../src/features/documents/write/update-document.js';
import { filterOption } from '../../ask/options.js';
import { recoverDocument, trashDocument } from '../../../src/features/documents/write/change-state.js';
import { readOperations } from '../../../src/features/documents/batch/batch-routes.js';
import { runBatch, tryBatch } from '../../../src/features/documents/batch/run-batch.js';

/** Parameters that name a collection to write to. */
const targetParameters = {
  collection: argument('collection', collectionArgument.description),
  project: projectOption,
};

export const documentArgument = optionalArgument('id', 'id of the document');

/** Fields of a document. They are a project's own business, so the audit log does not have them. */
const fieldsArgument = { ...argument('json', 'fields as a JSON object; - for standard input'), isContent: true };

/** The collection to write to, as the project itself; 403 USERS_BLOCKED for end users. */
async function chooseTarget(
  context: Context,
  named: { project: string | undefined; collection: string | undefined },
): Promise<{ app: App; project: Project; target: WriteTarget }> {
  const { app, project, collection } = await chooseCollection(context, named);
  if (collection.name === USERS) throw forbidden('USERS_BLOCKED', 'Users are not documents: see "bsvc user".');
  return { app, project, target: await requireWriteTarget(app, operatorCaller(project), collection.name) };
}

/** `defineCommand` for work on documents: with `<collection>`, `--project`, and `app`, `project` and `target`. */
const defineDocumentCommand = defineCommandOn(targetParameters, chooseTarget);

/** A name or a text that stands without quotes or in single ones, as JavaScript has them and shells leave them. */
const UNQUOTED = /[{,[:]\s*(?:'|(?!(?:true|false|null)\b)[A-Za-z_$])/;

/** The JSON of an argument, or of standard input for `-`; 400 INVALID_JSON. */
export async function readJsonText({ io }: Context, text: string, what = 'The fields are'): Promise<unknown> {
  const json = text === '-' ? await readTextStream(io.stdin, 'Standard input', MAX_ENTRY_BYTES) : text;
  try {
    return JSON.parse(json) as unknown;
  } catch (error) {
    const quotes = UNQUOTED.test(json) ? ' JSON has names and texts in double quotes: \'{"title": "Hello"}\'.' : '';
    throw invalid('INVALID_JSON', `${what} not JSON: ${(error as Error).message}.${quotes}`);
  }
}

/** A document as the outcome of a command: indented at a terminal. */
export function presentOne({ io }: Context, document: { _id: unknown }): Result {
  const indent = io.stdout.isTTY ? 2 : undefined;
  return {
    json: document,
    quiet: String(document._id),
    text: () => JSON.stringify(document, null, indent),
    untrusted: true,
  };
}

interface Which {
  isRemoval?: boolean;
  permanent?: boolean;
  onlyDeleted?: boolean;
}

/**
 * True for a command line with filters, false for one with the id of a document. A usage error names what is missing,
 * or an option of the other form.
 */
function chooseByFilter(
  id: string | undefined,
  filters: readonly unknown[],
  ofFilters: Record<string, unknown>,
  ofOne: Record<string, unknown>,
): boolean {
  const byFilter = filters.length > 0;
  if (byFilter === (id !== undefined)) throw new UsageError('Give either the id of one document, or --filter.');
  const [other] = Object.entries(byFilter ? ofOne : ofFilters).find(([, given]) => given) ?? [];
  if (other === undefined) return byFilter;
  const flag = other.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new UsageError(`--${flag} goes with ${byFilter ? 'the id of one document' : '--filter'}.`);
}

/** The filters of a command as the query of a request; 400 as of that. */
function readFilters(
  { collection }: WriteTarget,
  filters: readonly [name: string, value: string][],
  { isRemoval = false, permanent = false, onlyDeleted = false }: Which,
): BulkQuery {
  const query = new URLSearchParams(filters.map(([name, value]): [string, string] => [`filter[${name}]`, value]));
  if (permanent) query.set('permanent', 'true');
  if (onlyDeleted) query.set('include_deleted', 'only');
  return parseBulkQuery(query.toString(), collection, isRemoval);
}

/** Asks with the number of documents; the name to type is the collection's. */
async function confirmMatching(
  context: Context,
  { collection: { name } }: WriteTarget,
  count: number,
  { does, reversible }: { does: string; reversible: boolean },
): Promise<void> {
  if (count === 0) return;
  await context.confirm({ what: `${does} ${count} ${documents(count)} of "${name}".`, name, reversible });
}

function presentMatching(json: Record<string, number>, count: number, done: string): Result {
  return { json, quiet: count, text: () => `${count} ${documents(count)} ${done}.` };
}

const documents = (count: number): string => (count === 1 ? 'document' : 'documents');

const insert = defineDocumentCommand({
  details:
    'Checks the document against the fields of the collection. The audit log records the command without the document.',
  examples: ['bsvc data insert posts \'{"title":"Hello"}\' --project shop'],
  audited: true,
  parameters: { fields: fieldsArgument },
  async run(context, { app, target, fields }) {
    return presentOne(context, await insertDocument(app, target, await readJsonText(context, fields)));
  },
});

const update = defineDocumentCommand({
  details:
    'Changes the given fields only; a dotted key such as meta.views changes that nested one. Updates one document by its id, or all that match --filter: at most 10,000. It asks for confirmation with their number.',
  examples: [
    'bsvc data update posts \'{"title":"Hello again"}\' 665f1c2e9b1d8a0012ab34cd --project shop',
    'bsvc data update posts \'{"status":"archived"}\' --filter status=live --filter views_lt=10 --project shop --dry-run',
    'bsvc data update posts \'{"$inc":{"views":1}}\' --filter status=live --project shop --yes',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    fields: fieldsArgument,
    document: documentArgument,
    filters: filterOption([]),
    ifMatch: option('--if-match <updatedAt>', 'only if the document was not changed since: its updatedAt', (text) =>
      readIfMatch(`"${text.replaceAll('"', '')}"`),
    ),
    dryRun: flag('--dry-run', 'with --filter: only count them'),
  },
  async run(context, { app, target, document, fields, filters, ifMatch, dryRun }) {
    const byFilter = chooseByFilter(document, filters, { dryRun }, { ifMatch });
    const change = await readJsonText(context, fields);
    if (!byFilter) {
      const options = { expected: ifMatch ?? null, takesOperators: true };
      return presentOne(context, await updateDocument(app, target, document!, change, options));
    }
    const query = readFilters(target, filters, {});
    const count = await countWhatMatches(app, target, query);
    if (dryRun) return presentMatching({ matching: count }, count, 'would be changed');
    await confirmMatching(context, target, count, { does: 'Changes', reversible: false });
    const changed = await updateMatching(app, target, { ...query, confirm: count }, change, context.stop);
    return presentMatching({ changed }, changed, 'changed');
  },
});

const remove = defineDocumentCommand({
  details:
    'Moves one document to the trash, or all that match --filter: at most 10,000. It asks for confirmation with their number. --undo restores one until the trash is emptied, unless its unique value has been taken since.',
  examples: [
    'bsvc data delete posts 665f1c2e9b1d8a0012ab34cd --project shop',
    'bsvc data delete posts 665f1c2e9b1d8a0012ab34cd --undo --project shop',
    'bsvc data delete posts --filter status=archived --project shop --dry-run',
    'bsvc data delete posts --filter status=archived --permanent --only-deleted --project shop --yes',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    document: documentArgument,
    filters: filterOption([]),
    undo: flag('--undo', 'restore the document from the trash'),
    permanent: flag('--permanent', 'with --filter: delete them permanently'),
    onlyDeleted: flag('--only-deleted', 'with --permanent: only documents in the trash'),
    dryRun: flag('--dry-run', 'with --filter: only count them'),
  },
  async run(context, { app, target, document, filters, undo, permanent, onlyDeleted, dryRun }) {
    if (!chooseByFilter(document, filters, { permanent, onlyDeleted, dryRun }, { undo })) {
      if (undo) return presentOne(context, await recoverDocument(app, target, document!));
      const id = await trashDocument(app, target, document!);
      return { json: { id }, quiet: id, text: () => `Document ${id} is in the trash.` };
    }
    const query = readFilters(target, filters, { isRemoval: true, permanent, onlyDeleted });
    const count = await countWhatMatches(app, target, query);
    const done = permanent ? 'deleted permanently' : 'moved to the trash';
    if (dryRun) return presentMatching({ matching: count }, count, `would be ${done}`);
    const does = permanent ? 'Deletes permanently' : 'Moves to the trash';
    await confirmMatching(context, target, count, { does, reversible: !permanent });
    const removed = await removeMatching(app, target, { ...query, confirm: count }, context.stop);
    return presentMatching({ removed }, removed, done);
  },
});

const batch = defineProjectCommand({
  details:
    'In their order, each seeing those before it: {"op":"insert|update|remove|recover","collection":…,"id":…,"body":…,"ifMatch":…}, up to 100.',
  examples: [
    'bsvc data batch \'[{"op":"insert","collection":"posts","body":{"title":"Hello"}}]\' --project shop',
    'bsvc data batch - --project shop --dry-run < operations.json',
  ],
  audited: ({ dryRun }) => !dryRun,
  parameters: {
    operations: { ...argument('operations', 'operations as a JSON array; - for standard input'), isContent: true },
    dryRun: flag('--dry-run', 'only check whether they would succeed'),
  },
  async run(context, { app, project, operations: text, dryRun }) {
    const { operations } = readOperations({ operations: await readJsonText(context, text, 'The operations are') });
    const caller = operatorCaller(project);
    if (dryRun) {
      await tryBatch(app, caller, operations);
      const count = operations.length;
      return { json: { operations: count }, quiet: count, text: () => 'All operations would succeed.' };
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

export default { insert, update, delete: remove, batch };
