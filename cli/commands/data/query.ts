import { forbidden, missing } from '../../../src/errors.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import { explainList, listDocuments } from '../../../src/features/documents/read/list-documents.js';
import { requireDocumentId } from '../../../src/features/documents/write/write-target.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { viewAsOption, readAs } from '../../ask/choose-user.js';
import { filterOption } from '../../ask/filter-option.js';
import { projectOption } from '../../ask/choose-project.js';
import { presentExplained } from './present-explained.js';
import { defineCommand, flag, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { documentArgument, presentOne } from './one-document.js';
import { runPipeline } from './run-pipeline.js';
import { watchDocuments } from './watch-documents.js';

export default defineCommand({
  details: [
    'With an id, shows that document, even in the trash. Filters are those of the REST API: status=live, views_gt=10, tags_in=a,b, name_regex=^A, deletedOn_exists=false. One document per line; at a terminal, indented.',
    '--pipeline runs an aggregation instead, with the stages and operators of the REST API. One result per line.',
    '--watch subscribes to changes. One JSON object per line: {"type":"upsert","id",…,"document"}, {"type":"gone",…}, or {"type":"reset"} when the log does not go back far enough and you must start over. Prints existing documents first, then changes, until Ctrl-C. With --cursor-file it goes on where it was when it is run again.',
  ].join('\n'),
  examples: [
    'bsvc data query posts --project shop --filter status=live --sort -views --limit 5',
    'bsvc data query posts --project shop --filter views_gte=10 --fields title,views --quiet',
    'bsvc data query posts --project shop --only-deleted --sort -updatedAt',
    'bsvc data query posts 665f1c2e9b1d8a0012ab34cd --project shop',
    'bsvc data query posts --project shop --count',
    'bsvc data query posts --project shop --filter status=live --sort -views --explain',
    'bsvc data query posts --project shop --as ann@example.com',
    'bsvc data query posts --project shop --pipeline \'[{"$group":{"_id":"$author","posts":{"$sum":1}}}]\'',
    'bsvc data query posts --project shop --pipeline - --explain < pipeline.json',
    'bsvc data query posts --project shop --watch --filter status=live',
    'bsvc data query posts --project shop --watch --once --cursor-file posts.cursor >> posts.ndjson',
  ],
  parameters: {
    collection: collectionArgument,
    id: documentArgument,
    project: projectOption,
    as: viewAsOption,
    filters: filterOption(['sort', 'fields', 'populate', 'limit', 'page', 'count', 'include_deleted']),
    sort: option('--sort <fields>', 'for example -views,title'),
    fields: option('--fields <names>', 'only these fields, separated by commas'),
    populate: option('--populate <fields>', 'replace these Ref fields by their documents'),
    limit: option('--limit <n>', 'how many (default: 20)'),
    page: option('--page <n>', 'which page, from 1'),
    includeDeleted: flag('--include-deleted', 'include documents in the trash'),
    onlyDeleted: flag('--only-deleted', 'only documents in the trash'),
    count: flag('--count', 'only count'),
    explain: flag('--explain', 'show the index that the query uses, and how many documents it scans'),
    pipeline: option('--pipeline <json>', 'run these stages; - for standard input'),
    watch: flag('--watch', 'subscribe to changes'),
    since: option('--since <cursor>', 'with --watch: cursor to start from, or now (default: existing documents first)'),
    once: flag('--once', 'with --watch: end after the last change'),
    cursorFile: option('--cursor-file <file>', 'with --watch: file that stores the cursor, to continue from'),
  },
  async run(context, input) {
    rejectMixed(input);
    const query = new URLSearchParams(input.filters);
    for (const name of ['sort', 'fields', 'populate', 'limit', 'page'] as const) {
      if (input[name] !== undefined) query.set(name, input[name]);
    }
    if (input.includeDeleted) query.set('include_deleted', 'true');
    if (input.onlyDeleted) query.set('include_deleted', 'only');
    if (input.count) query.set('count', 'true');
    const { app, project, collection } = await chooseCollection(context, input);
    if (input.watch) return watchDocuments(context, { app, project, collection }, input);
    if (collection.name === USERS) throw forbidden('USERS_BLOCKED', 'Users are not listed as documents.');
    if (input.pipeline !== undefined) {
      return runPipeline(context, { app, project, collection }, { ...input, pipeline: input.pipeline });
    }
    const asked = { project, collection: collection.name, as: input.as };
    if (input.id !== undefined) {
      const one = `_id=${requireDocumentId(input.id).toHexString()}&include_deleted=true&limit=1`;
      const page = await readAs(app, asked, (caller) => listDocuments(app, caller, collection.name, one, context.stop));
      const [found] = 'items' in page ? page.items : [];
      if (!found) throw missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the collection');
      return presentOne(context, found);
    }
    if (input.explain) {
      const explained = await readAs(app, asked, (caller) =>
        explainList(app, caller, collection.name, query.toString(), context.stop),
      );
      return presentExplained(explained, 'of the page');
    }
    const reply = await readAs(app, asked, (caller) =>
      listDocuments(app, caller, collection.name, query.toString(), context.stop),
    );
    if ('count' in reply) return { json: reply, quiet: reply.count, text: () => String(reply.count) };
    const { items, ...page } = reply;
    const indent = context.io.stdout.isTTY ? 2 : undefined;
    return {
      json: reply,
      untrusted: true,
      quiet: items.map(({ _id }) => _id),
      text: () => {
        context.out.note(`${items.length} of ${page.total ?? 'an unknown number of'} documents`);
        return items.map((item) => JSON.stringify(item, null, indent)).join('\n');
      },
    };
  },
});

const OF_LISTS = ['id', 'sort', 'populate', 'limit', 'page', 'onlyDeleted', 'count'];
const OF_WATCHING = ['since', 'once', 'cursorFile'];

/** A list, a pipeline and a watch each take options of their own. */
function rejectMixed(input: Record<string, unknown>): void {
  const isGiven = (name: string): boolean =>
    input[name] !== undefined && input[name] !== false && (input[name] as string[]).length !== 0;
  const refused = input.watch
    ? [...OF_LISTS, 'includeDeleted', 'explain', 'pipeline']
    : [...OF_WATCHING, ...(input.pipeline === undefined ? [] : [...OF_LISTS, 'as', 'filters', 'fields'])];
  const found = refused.find(isGiven);
  if (found === undefined) return;
  const name = found === 'id' ? 'The id of a document' : optionOf(found);
  if (input.watch) throw new UsageError(`${name} does not go with --watch.`);
  throw new UsageError(
    OF_WATCHING.includes(found) ? `${name} goes with --watch.` : `${name} does not go with --pipeline.`,
  );
}

const optionOf = (name: string): string =>
  `--${name === 'filters' ? 'filter' : name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
