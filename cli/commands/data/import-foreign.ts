import { resolve } from 'node:path';
import type { App } from '../../../src/app.js';
import { AppError } from '../../../src/errors.js';
import { addCollection, readNewCollection } from '../../../src/features/collections/add-collection.js';
import { findCollection, requireStoredCollection } from '../../../src/features/collections/collection-store.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import { rowReader, type Head } from '../../../src/exchange/csv-row.js';
import { readExtendedDocument, type Note } from '../../../src/features/documents/bulk/extended-json.js';
import { ImportNotes } from '../../../src/features/documents/bulk/imported-document.js';
import { importDocuments } from '../../../src/features/documents/bulk/import-documents.js';
import type { Project } from '../../../src/features/projects/project.js';
import { chooseProject } from '../../ask/choose.js';
import {
  LINE_SOURCES,
  readForeignDocument,
  type ForeignDocument,
  type LineSource,
  withOwnValues,
} from '../../formats/foreign/foreign-document.js';
import { USER_SOURCES } from '../../formats/foreign/foreign-user.js';
import { openPocketBase, type PocketBaseCollection } from '../../formats/foreign/pocketbase.js';
import { storeInBatches, type ForeignEntry } from '../../formats/foreign/store-in-batches.js';
import { measureSource, openSource, type Encoding } from '../../formats/open-source.js';
import { findFormat, readEntries, type Format } from '../../formats/entries.js';
import type { Context } from '../../shell/context.js';
import type { Result } from '../../view/output.js';
import { UsageError } from '../../view/exit.js';
import { importForeignUsers } from './import-users.js';
import { presentForeignImport, type ForeignImport } from './present-import.js';

export const FOREIGN_SOURCES = [...new Set(['pocketbase' as const, ...LINE_SOURCES, ...USER_SOURCES])];
export type ForeignSource = (typeof FOREIGN_SOURCES)[number];

interface ForeignInput {
  from: ForeignSource;
  hashConfig?: string;
  collection?: string;
  file?: string;
  project?: string;
  source?: string;
  parent?: string;
  oldId?: string;
  format?: Format;
  encoding?: Encoding;
  dryRun: boolean;
}

/** `data import --from`: ids become ids here; what is there already stays as it is. */
export async function importForeign(context: Context, input: ForeignInput): Promise<Result> {
  // With one word alone it is the file.
  const [collection, file] = input.file === undefined ? [undefined, input.collection] : [input.collection, input.file];
  if (file === undefined) throw new UsageError('The argument <file> is missing');
  if (collection === USERS) return importForeignUsers(context, { ...input, file });
  if (input.from === 'firebase') throw new UsageError('Of firebase there are users: data import users <file>');
  if (input.from === 'pocketbase') return importPocketBase(context, input, file, collection);
  if (collection === undefined) throw new UsageError('The argument <collection> is missing');
  await measureSource(context, file);
  const { app, project } = await chooseProject(context, input.project);
  const target = await requireStoredCollection(app, project._id, collection);
  const declared = new Set(target.fields.map(({ name }) => name));
  const place = { collection: input.source ?? collection, parent: input.parent, declared };
  const notes = new ImportNotes();
  const entries = readDocuments(context, file, input, target, (value, line) =>
    readForeignDocument(input.from as LineSource, value, place, (field, message) => notes.add(field, message, line)),
  );
  const outcome = await importInto(context, app, target, { entries, notes }, input);
  return presentForeignImport([outcome], input.dryRun);
}

async function* readDocuments(
  context: Context,
  file: string,
  { from, source, format, encoding }: ForeignInput,
  { name, fields }: Collection,
  read: (value: unknown, line: number) => ForeignDocument | null,
): AsyncGenerator<ForeignEntry<ForeignDocument> | { line: number; note: string }> {
  const form = format ?? findFormat(file) ?? 'ndjson';
  if (form === 'csv' && from === 'firestore') throw new UsageError('Documents of Firestore are JSON, not CSV.');
  const list = { name: source ?? name, fields: new Set(fields.map((field) => field.name)) };
  const openRows = (head: Head) => rowReader(head, fields);
  for await (const entry of readEntries(openSource(context, file, { encoding }), form, { openRows, list })) {
    if ('problem' in entry || 'note' in entry) {
      yield entry;
      continue;
    }
    try {
      const value = read(entry.value, entry.line);
      if (value) yield { line: entry.line, value };
    } catch (error) {
      yield { line: entry.line, problem: (error as Error).message };
    }
  }
}

type Entries<T> = AsyncIterable<T> | Iterable<T>;

interface Coming {
  entries: Entries<ForeignEntry<ForeignDocument> | { line: number; note: string }>;
  /** What reading the entries left out or changed. */
  notes: ImportNotes;
}

async function importInto(
  context: Context,
  app: App,
  collection: Collection,
  { entries, notes }: Coming,
  { dryRun, oldId }: ForeignInput,
): Promise<ForeignImport> {
  const taken = takeNotes(entries, notes);
  const { report, broken } = await storeInBatches(
    context,
    `Importing ${collection.name}`,
    taken,
    async (batch, lines) => {
      const read = batch.map(({ id, document }, at) => {
        const note: Note = (field, message) => notes.add(field, message, lines[at]!);
        try {
          const plain = readExtendedDocument(collection.fields, document, note);
          const own = withOwnValues(collection.fields, plain);
          return oldId === undefined ? own : { ...own, [oldId]: id };
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          return error;
        }
      });
      const problems = read.flatMap((each, index) =>
        each instanceof AppError ? [{ index, message: each.message }] : [],
      );
      const values = read.flatMap((value, index) => (value instanceof AppError ? [] : [{ index, value }]));
      const options = { dryRun, keepPresent: true };
      const outcome = await importDocuments(
        app,
        collection,
        values.map(({ value }) => value),
        options,
      );
      notes.merge(outcome.notes, (index) => lines[values[index]!.index]!);
      const rejected = outcome.rejected.map(({ index, message }) => ({ index: values[index]!.index, message }));
      return { stored: outcome.inserted, present: outcome.present ?? 0, rejected: [...problems, ...rejected] };
    },
  );
  const changed = notes.list.map(({ index, ...note }) => ({ ...note, line: index }));
  return { name: collection.name, created: false, notes: [], changed, report, broken };
}

async function* takeNotes<T>(
  entries: Entries<T | { line: number; note: string }>,
  notes: ImportNotes,
): AsyncGenerator<T> {
  for await (const entry of entries) {
    if (typeof entry === 'object' && entry !== null && 'note' in entry) {
      notes.add('', entry.note, entry.line);
    } else {
      yield entry;
    }
  }
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
    return { name, created: false, notes, changed: [], report, broken: null };
  }
  const notes = new ImportNotes();
  const outcome = await importInto(context, app, target, { entries: documentsOf(source, notes), notes }, input);
  return { ...outcome, created: !there, notes: source.notes };
}

function* documentsOf(source: PocketBaseCollection, notes: ImportNotes): Generator<ForeignEntry<ForeignDocument>> {
  let line = 1;
  for (const value of source.documents((field, message) => notes.add(field, message, line))) {
    yield { line, value };
    line += 1;
  }
}
