import { resolve } from 'node:path';
import type { App } from '../../../src/app.js';
import { AppError } from '../../../src/errors.js';
import { addCollection, readNewCollection } from '../../../src/features/collections/add-collection.js';
import { findCollection, requireStoredCollection } from '../../../src/features/collections/collection-store.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { importDocuments } from '../../../src/features/documents/bulk/import-documents.js';
import type { Project } from '../../../src/features/projects/project.js';
import { chooseProject } from '../../ask/choose-project.js';
import { LINE_SOURCES, readForeignDocument, type LineSource } from '../../formats/foreign/foreign-document.js';
import { withOwnValues } from '../../formats/foreign/foreign-id.js';
import { openPocketBase, type PocketBaseCollection } from '../../formats/foreign/pocketbase.js';
import { storeInBatches, type ForeignEntry } from '../../formats/foreign/store-in-batches.js';
import { measureSource, openSource } from '../../formats/open-source.js';
import { findFormat, readEntries } from '../../formats/read-entries.js';
import type { Context } from '../../shell/context.js';
import type { Result } from '../../view/output.js';
import { UsageError } from '../../view/exit.js';
import { presentForeignImport, type ForeignImport } from './present-foreign-import.js';

export const DATA_SOURCES = ['pocketbase', ...LINE_SOURCES] as const;
export type DataSource = (typeof DATA_SOURCES)[number];

interface ForeignInput {
  from: DataSource;
  collection?: string;
  file?: string;
  project?: string;
  source?: string;
  parent?: string;
  oldId?: string;
  dryRun: boolean;
}

type Value = Record<string, unknown>;

/** `data import --from`: ids become ids here; what is there already stays as it is. */
export async function importForeign(context: Context, input: ForeignInput): Promise<Result> {
  // With one word alone it is the file.
  const [collection, file] = input.file === undefined ? [undefined, input.collection] : [input.collection, input.file];
  if (file === undefined) throw new UsageError('The argument <file> is missing');
  if (input.from === 'pocketbase') return importPocketBase(context, input, file, collection);
  if (collection === undefined) throw new UsageError('The argument <collection> is missing');
  await measureSource(context, file);
  const { app, project } = await chooseProject(context, input.project);
  const target = await requireStoredCollection(app, project._id, collection);
  const place = { collection: input.source ?? collection, parent: input.parent };
  const entries = readLines(context, file, (value) => readForeignDocument(input.from as LineSource, value, place));
  const outcome = await importInto(context, app, target, entries, input);
  return presentForeignImport([outcome], input.dryRun);
}

async function* readLines(
  context: Context,
  file: string,
  read: (value: unknown) => Value | null,
): AsyncGenerator<ForeignEntry<{ value: Value; id: unknown }>> {
  const format = findFormat(file) === 'json' ? 'json' : 'ndjson';
  const readRow = (): never => {
    throw new Error('no CSV is read here');
  };
  for await (const entry of readEntries(openSource(context, file), format, { readRow })) {
    if ('problem' in entry) {
      yield entry;
      continue;
    }
    try {
      const value = read(entry.value);
      if (value) yield { line: entry.line, value: { value, id: idThere(entry.value as Value) } };
    } catch (error) {
      yield { line: entry.line, problem: (error as Error).message };
    }
  }
}

/** The id of a document in the other service. */
function idThere({ _id, id = _id, name }: Value): unknown {
  return id ?? String(name).split('/').at(-1);
}

async function importInto(
  context: Context,
  app: App,
  collection: Collection,
  entries:
    AsyncIterable<ForeignEntry<{ value: Value; id: unknown }>> | Iterable<ForeignEntry<{ value: Value; id: unknown }>>,
  { dryRun, oldId }: ForeignInput,
): Promise<ForeignImport> {
  const { report, broken } = await storeInBatches(context, `Importing ${collection.name}`, entries, async (batch) => {
    const values = batch.map(({ value, id }) => {
      const own = withOwnValues(collection.fields, value);
      return oldId === undefined ? own : { ...own, [oldId]: String(id) };
    });
    const outcome = await importDocuments(app, collection, values, { dryRun, keepPresent: true });
    return { stored: outcome.inserted, present: outcome.present ?? 0, rejected: outcome.rejected };
  });
  return { name: collection.name, created: false, notes: [], report, broken };
}

async function importPocketBase(
  context: Context,
  input: ForeignInput,
  path: string,
  named: string | undefined,
): Promise<Result> {
  const file = await openPocketBase(resolve(context.io.cwd, path));
  try {
    const source = input.source ?? named;
    const wanted = source === undefined ? file.collections : file.collections.filter(({ name }) => name === source);
    if (wanted.length === 0) {
      const known = file.collections.map(({ name }) => name).join(', ') || 'none';
      throw new UsageError(`The file has no collection ${source ?? ''} of documents. It has: ${known}.`);
    }
    const { app, project } = await chooseProject(context, input.project);
    const done: ForeignImport[] = [];
    for (const each of wanted) {
      const outcome = await importCollection(context, { app, project }, each, named ?? each.name, input);
      done.push(outcome);
      if (outcome.broken) break;
    }
    return presentForeignImport(done, input.dryRun);
  } finally {
    file.close();
  }
}

async function importCollection(
  context: Context,
  { app, project }: { app: App; project: Project },
  source: PocketBaseCollection,
  name: string,
  input: ForeignInput,
): Promise<ForeignImport> {
  const there = await findCollection(app, project._id, name);
  const oldId = input.oldId === undefined ? [] : [{ name: input.oldId, type: 'String' as const }];
  const declared = { name, fields: [...source.fields, ...oldId], rules: 'server-only' as const };
  let target = there;
  try {
    target ??= input.dryRun
      ? await readNewCollection(app, project, declared)
      : (await addCollection(app, project, declared)).collection;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const report = { read: 0, stored: 0, present: 0, rejectedCount: source.rows, rejected: [] };
    const notes = [`${error.message}. Import it alone: data import <name> … --source ${source.name}`];
    return { name, created: false, notes, report, broken: null };
  }
  const outcome = await importInto(context, app, target, documentsOf(source), input);
  return { ...outcome, created: !there, notes: source.notes };
}

function* documentsOf(source: PocketBaseCollection): Generator<ForeignEntry<{ value: Value; id: unknown }>> {
  let line = 0;
  for (const { id, document } of source.documents()) yield { line: ++line, value: { value: document, id } };
}
