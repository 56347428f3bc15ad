import { forbidden, missing, AppError, invalid } from '../../../src/errors.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import { explainList, listDocuments, type ExplainedList } from '../../../src/features/documents/read/list-documents.js';
import { requireDocumentId } from '../../../src/features/documents/write/write-target.js';
import { chooseCollection, collectionArgument, projectOption, viewAsOption, readAs } from '../../ask/choose.js';
import { filterOption } from '../../ask/options.js';
import { defineCommand, flag, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { documentArgument, presentOne, readJsonText } from './write.js';
import type { App } from '../../../src/app.js';
import { operatorCaller } from '../../../src/features/access/operator-access.js';
import { aggregateDocuments, explainPipeline } from '../../../src/features/documents/read/aggregate-documents.js';
import { readEncoded } from '../../../src/features/documents/reply/encoded-reply.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import type { Project } from '../../../src/features/projects/project.js';
import type { Context } from '../../shell/context.js';
import type { Result } from '../../view/output.js';
import { readTextFile } from '../../../src/text.js';
import type { Caller } from '../../../src/features/access/caller.js';
import { FEED_PARAMETERS } from '../../../src/features/feed/feed-query.js';
import { watchChanges } from '../../../src/features/feed/watch-changes.js';
import { replaceFile, resolveOutput } from '../../formats/output-file.js';

export default defineCommand({
  details: [
    'With an id, shows that document, even in the trash. Filters are those of the REST API: status=live, views_gt=10, tags_in=a,b, name_regex=^A, deletedOn_exists=false. One document per line; at a terminal, indented.',
    '--pipeline runs an aggregation instead, with the stages and operators of the REST API. One result per line.',
    '--watch subscribes to changes. One JSON object per line: {"type":"upsert","id",…,"document"}, {"type":"gone",…}, or {"type":"reset"} when the log does not go back far enough and you must start over. Prints existing documents first, then changes, until Ctrl-C. With --cursor-file, the next run continues where this one stopped.',
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

/** What runs of a plan, from the database's names of its stages. */
const STEPS: Readonly<Record<string, string>> = {
  SORT: 'sorted after reading',
  SORT_MERGE: 'several ranges merged in the wanted order',
  OR: 'several indexes, one after the other',
  TRIAL: 'given up for another plan when it reads too much',
  DISTINCT_SCAN: 'one document of each value',
};

/** A plan in words: by which index, how, and past how many documents. `purpose` says what those found are for. */
export function presentExplained(explained: ExplainedList, purpose: string) {
  const { indexes, examined, returned, plan } = explained;
  const by = indexes.length === 0 ? 'no index: every document is read' : `by ${indexes.join(', ')}`;
  const stages = stagesOf(plan);
  const steps = Object.keys(STEPS).filter((stage) => stages.includes(stage));
  return {
    json: explained,
    quiet: indexes,
    text: () =>
      [by, ...steps.map((stage) => STEPS[stage]!), `${examined} documents examined for ${returned} ${purpose}`].join(
        '\n',
      ),
  };
}

function stagesOf(plan: unknown): string[] {
  if (typeof plan !== 'object' || plan === null) return [];
  const { stage } = plan as { stage?: unknown };
  return [...(typeof stage === 'string' ? [stage] : []), ...Object.values(plan).flatMap(stagesOf)];
}

/** The results of a pipeline (`-` for standard input), or with `explain` how its first stages are read. */
async function runPipeline(
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

interface Watched {
  filters: [name: string, value: string][];
  fields: string | undefined;
  as: string | undefined;
  since: string | undefined;
  once: boolean;
  cursorFile: string | undefined;
}

/** Follows the changes of a collection, one JSON object per line, until it is stopped. */
async function watchDocuments(
  context: Context,
  { app, project, collection }: { app: App; project: Project; collection: Collection },
  input: Watched,
): Promise<void> {
  const parameter = input.filters.find(([name]) => FEED_PARAMETERS.has(name));
  if (parameter) throw new UsageError(`--filter ${parameter[0]}=… is no condition of changes.`);
  const cursorFile =
    input.cursorFile === undefined ? undefined : await resolveOutput(context, input.cursorFile, '--cursor-file');
  const query = new URLSearchParams(input.filters);
  if (input.fields !== undefined) query.set('fields', input.fields);
  const noted = cursorFile === undefined ? null : await readCursor(cursorFile);
  if (noted !== null && input.since !== undefined) {
    throw new UsageError(`${input.cursorFile} says where to go on: leave --since out, or remove the file.`);
  }
  const tell = async (caller: Caller): Promise<void> => {
    const pages = watchChanges(app, caller, {
      collectionName: collection.name,
      query: query.toString(),
      since: noted ?? input.since ?? null,
      signal: context.stop,
    });
    let last = noted;
    for await (const { lines, cursor, isCaughtUp, isReset } of noted === null ? pages : from(input.cursorFile, pages)) {
      if (isReset) {
        await context.out.write('{"type":"reset"}\n');
      } else {
        if (lines.length > 0) await context.out.write(`${lines.join('\n')}\n`);
        // Not before it is written: a command that is stopped in between prints it once more.
        if (cursorFile !== undefined && cursor !== last) await replaceFile(cursorFile, `${cursor}\n`);
        last = cursor;
        if (isCaughtUp && input.once) return;
      }
    }
  };
  await readAs(app, { project, collection: collection.name, as: input.as }, tell);
}

/** The pages by the cursor of a file; 400 INVALID_CURSOR names the file. */
async function* from<T>(file: string | undefined, pages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* pages;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_CURSOR') throw error;
    const message = `${file} holds no cursor of this collection and filter: remove it to begin anew, or name another`;
    throw invalid('INVALID_CURSOR', message, { cause: error });
  }
}

async function readCursor(path: string): Promise<string | null> {
  try {
    return (await readTextFile(path)).trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`);
  }
}
