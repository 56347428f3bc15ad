import { forbidden, missing } from '../../../src/errors.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import { explainList, listDocuments } from '../../../src/features/documents/read/list-documents.js';
import { requireDocumentId } from '../../../src/features/documents/write/write-target.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { playedOption, readAs } from '../../ask/choose-user.js';
import { filterOption } from '../../ask/filter-option.js';
import { projectOption } from '../../ask/choose-project.js';
import { presentExplained } from './present-explained.js';
import { defineCommand, flag, option } from '../../shell/command.js';
import { documentArgument, presentOne } from './one-document.js';

export default defineCommand({
  details:
    'With an id it shows that document, in the trash too. Filters are those of the REST API: status=live, views_gt=10, tags_in=a,b, name_regex=^A, deletedOn_exists=false. One document per line; at a terminal, indented.',
  examples: [
    'bsvc data query posts --project shop --filter status=live --sort -views --limit 5',
    'bsvc data query posts --project shop --filter views_gte=10 --fields title,views --quiet',
    'bsvc data query posts --project shop --only-deleted --sort -updatedAt',
    'bsvc data query posts 665f1c2e9b1d8a0012ab34cd --project shop',
    'bsvc data query posts --project shop --count',
    'bsvc data query posts --project shop --filter status=live --sort -views --explain',
    'bsvc data query posts --project shop --as ann@example.com',
  ],
  parameters: {
    collection: collectionArgument,
    id: documentArgument,
    project: projectOption,
    as: playedOption,
    filters: filterOption(['sort', 'fields', 'populate', 'limit', 'page', 'count', 'include_deleted']),
    sort: option('--sort <fields>', 'for example -views,title'),
    fields: option('--fields <names>', 'only these fields, separated by commas'),
    populate: option('--populate <fields>', 'put the referred documents in place of these Ref fields'),
    limit: option('--limit <n>', 'how many (default: 20)'),
    page: option('--page <n>', 'which page, from 1'),
    includeDeleted: flag('--include-deleted', 'the documents in the trash too'),
    onlyDeleted: flag('--only-deleted', 'the documents in the trash alone'),
    count: flag('--count', 'only count'),
    explain: flag('--explain', 'tell how the page is read: by which index, and past how many documents'),
  },
  async run(context, input) {
    const query = new URLSearchParams(input.filters);
    for (const name of ['sort', 'fields', 'populate', 'limit', 'page'] as const) {
      if (input[name] !== undefined) query.set(name, input[name]);
    }
    if (input.includeDeleted) query.set('include_deleted', 'true');
    if (input.onlyDeleted) query.set('include_deleted', 'only');
    if (input.count) query.set('count', 'true');
    const { app, project, collection } = await chooseCollection(context, input);
    if (collection.name === USERS) throw forbidden('USERS_BLOCKED', 'Users are not listed as documents.');
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
      quiet: items.map(({ _id }) => _id),
      text: () => {
        context.out.note(`${items.length} of ${page.total ?? 'an unknown number of'} documents`);
        return items.map((item) => JSON.stringify(item, null, indent)).join('\n');
      },
    };
  },
});
