import { basename } from 'node:path';
import type { Collection } from '../../../src/features/collections/collection.js';
import { rowReader } from '../../../src/exchange/csv-row.js';
import { importDocuments } from '../../../src/features/documents/bulk/import-documents.js';
import { ImportNotes } from '../../../src/features/documents/bulk/imported-document.js';
import type { ImportOutcome } from '../../../src/features/documents/bulk/upsert-documents.js';
import { chooseCollection, projectOption } from '../../ask/choose.js';
import { choice, defineCommand, flag, list, optionalArgument, option } from '../../shell/command.js';
import { Interrupted, presentFailure, UsageError, type Failure, refused } from '../../view/exit.js';
import { ENCODINGS, type Encoding, measureSource, openSource } from '../../formats/open-source.js';
import { findFormat, FORMATS, readEntries, type Format, type ReadOptions } from '../../formats/entries.js';
import { importForeign, FOREIGN_SOURCES, type ForeignSource } from './import-foreign.js';
import { presentImport, type ImportReport } from './present-import.js';
import type { Result } from '../../view/output.js';
import { countOf } from '../../view/present.js';
import { wholeWithin } from '../../../src/config/setting-readers.js';

const BATCH_DOCUMENTS = 500;
/** A batch of large documents ends here, so that they do not pile up in memory. */
const BATCH_CHARACTERS = 4 * 1024 * 1024;
const MAX_LISTED_REJECTS = 1000;

export default defineCommand({
  details: [
    'NDJSON: one document per line. JSON: an array of documents, or an object around it that names the collection. Extended JSON of mongoexport is read in both. CSV and TSV: a head row, a.b for nested fields; cells are parsed by the declared types, as spreadsheets write them (TRUE, yes, 1,5 with semicolons).',
    'Rejected lines are reported with their numbers; --on-error stop ends at the first one. Documents stored before that stay. Fields that are left out or converted are counted.',
    'An interrupted import prints how many entries it has processed: continue with --skip. You can also repeat the import of an export, because ids and times are kept. --key updates existing documents, found by a unique field or _id, instead of rejecting them.',
    '--from reads exports of another service: ids are converted, references stay intact, and a second run continues. pocketbase reads data.db and creates missing collections, accessible only with the secret key until you set rules.',
    'Users come with --from only, and no emails are sent. firebase: the file of "firebase auth:export users.json --format=json", with the password hash parameters of the project in --hash-config. supabase: auth.users as one row_to_json per line. parse: what mongoexport writes of _User. Passwords keep working: bcrypt hashes are stored as they are, those of Firebase are checked at the first sign-in. Fields that "users" does not declare are left out and named.',
  ].join('\n'),
  examples: [
    'bsvc data import posts posts.ndjson --project shop',
    'bsvc data import countries countries.json --project shop --on-error stop',
    'bsvc data import items items.csv --project shop --key sku --column Name=title --encoding latin1',
    'bsvc data import --from pocketbase pb_data/data.db --project shop --dry-run',
    'bsvc data import users users.json --from firebase --hash-config hash.txt --project shop',
    'gunzip -c events.ndjson.gz | bsvc data import events - --format ndjson --project shop',
  ],
  audited: ({ dryRun }) => !dryRun,
  parameters: {
    collection: optionalArgument('collection', 'name of the collection; picked from a list when left out'),
    file: optionalArgument('file', 'file to read; - for standard input'),
    project: projectOption,
    format: choice<Format>('--format <format>', 'of the file (default: by its name)', FORMATS),
    encoding: choice<Encoding>('--encoding <encoding>', 'of the file (default: utf-8)', ENCODINGS),
    columns: list('--column <from=to>', 'read this column of a CSV file as that field (repeatable)', readColumn),
    skip: option('--skip <n>', 'skip the first entries of the file', wholeWithin(0, Number.MAX_SAFE_INTEGER)),
    key: option('--key <field>', 'update the document with the same value of this unique field, or _id'),
    onError: choice('--on-error <action>', 'when a line is rejected (default: continue)', ['continue', 'stop']),
    batch: option('--batch <n>', `documents per write (default: ${BATCH_DOCUMENTS})`, wholeWithin(1, 9999)),
    dryRun: flag('--dry-run', 'only check every line against the fields of the collection'),
    from: choice<ForeignSource>('--from <service>', 'what another service exported', FOREIGN_SOURCES),
    source: option('--source <name>', 'name of the collection in the export, if it differs'),
    parent: option('--parent <field>', 'with --from firestore: field for the id of a subcollection’s parent document'),
    hashConfig: option('--hash-config <file>', 'with users of Firebase: password hash parameters of its project'),
    oldId: option('--old-id <field>', 'with --from: store the old id in this field'),
  },
  async run(context, input) {
    if (input.hashConfig !== undefined && input.from !== 'firebase') {
      throw new UsageError('--hash-config goes with --from firebase.');
    }
    if (input.from) return importForeign(context, { ...input, from: input.from });
    const file =
      input.file ?? (await context.ask.text('File to read (- for standard input):', 'The argument <file> is missing'));
    const format = input.format ?? findFormat(file);
    if (!format) throw new UsageError(`Add --format ${FORMATS.join('|')}: the name "${file}" does not tell it.`);
    const bytes = await measureSource(context, file);
    const { app, collection } = await chooseCollection(context, input);
    const progress = await context.out.progress(`Importing ${basename(file)}`);
    const report: ImportReport = { inserted: 0, updated: 0, read: 0, rejectedCount: 0, rejected: [], notes: [] };
    const reject = (line: number, message: string): void => {
      report.rejectedCount++;
      if (report.rejected.length < MAX_LISTED_REJECTS) report.rejected.push({ line, message });
    };
    const notes = new ImportNotes();
    let taken = 0;
    const store = async (batch: { line: number; value: unknown }[], read: number): Promise<void> => {
      const outcome: ImportOutcome =
        batch.length === 0
          ? { inserted: 0, rejected: [] }
          : await importDocuments(
              app,
              collection,
              batch.map((entry) => entry.value),
              { dryRun: input.dryRun, key: input.key },
            );
      report.inserted += outcome.inserted;
      report.updated += outcome.updated ?? 0;
      report.read = read;
      for (const { index, message } of outcome.rejected) reject(batch[index]!.line, message);
      notes.merge(outcome.notes, (index) => batch[index]!.line);
      const fate = input.dryRun ? 'fit' : 'stored';
      const text = `${countOf(report.inserted + report.updated, 'document')} ${fate}, ${report.rejectedCount} refused`;
      progress.update(text, bytes === null ? undefined : taken / Math.max(1, bytes));
    };
    const size = input.onError === 'stop' ? 1 : (input.batch ?? BATCH_DOCUMENTS);
    const stopping = (): boolean => input.onError === 'stop' && report.rejectedCount > 0;
    const work = async (): Promise<void> => {
      let batch: { line: number; value: unknown }[] = [];
      let waiting = 0;
      let read = 0;
      const { encoding } = input;
      const source = openSource(context, file, { encoding, count: (length) => (taken += length) });
      for await (const entry of readEntries(source, format, readingOf(collection, input))) {
        if (context.stop.aborted) throw new Interrupted();
        if ('note' in entry) {
          notes.add('', entry.note, entry.line);
          continue;
        }
        read++;
        if (read <= (input.skip ?? 0)) continue;
        if ('problem' in entry) reject(entry.line, entry.problem);
        else batch.push(entry);
        waiting += 'length' in entry ? entry.length : 0;
        if (batch.length >= size || waiting >= BATCH_CHARACTERS) {
          await store(batch, read);
          batch = [];
          waiting = 0;
        }
        if (stopping()) break;
      }
      if (!stopping()) await store(batch, read);
      report.read = read;
    };
    let broken: Failure | null = null;
    try {
      await work();
    } catch (error) {
      broken = presentFailure(context.stop.aborted ? new Interrupted() : error);
      if (report.read === 0 && !context.stop.aborted) throw error;
    } finally {
      progress.stop();
    }
    // Lines that do not parse are found earlier than lines that the batch refuses.
    report.rejected.sort((a, b) => a.line - b.line);
    report.notes = notes.list.map(({ index, ...note }) => ({ ...note, line: index }));
    return outcomeOf(collection.name, report, broken, input);
  },
});

/** How files are read for a collection. */
function readingOf(
  { name, fields }: Collection,
  { columns, source = name }: { columns: [from: string, to: string][]; source?: string },
): ReadOptions {
  const renamed = new Map(columns);
  return {
    openRows: (head) => rowReader(head, fields, (column) => renamed.get(column) ?? column),
    list: { name: source, fields: new Set(fields.map((field) => field.name)) },
  };
}

function outcomeOf(
  collection: string,
  report: ImportReport,
  broken: Failure | null,
  { dryRun, key, onError }: { dryRun: boolean; key?: string; onError?: string },
): Result {
  const { inserted, updated, read, notes, ...rest } = report;
  return {
    json: {
      inserted: dryRun ? 0 : inserted,
      ...(key !== undefined && { updated }),
      ...rest,
      ...(notes.length > 0 && { notes }),
      ...(dryRun && { fitting: inserted + updated, dryRun: true }),
      ...(broken && { read }),
      collection,
    },
    quiet: inserted + updated,
    ...failureOf(report, broken, dryRun),
    text: () => presentImport(collection, report, { stops: onError === 'stop', dryRun }),
  };
}

function failureOf(report: ImportReport, broken: Failure | null, dryRun: boolean): { failure?: Failure } {
  const stored = countOf(report.inserted + report.updated, 'document');
  if (broken) {
    const next = dryRun
      ? 'Nothing was stored.'
      : `${stored} stored. To go on, run it again with --skip ${report.read}.`;
    return { failure: { ...broken, message: `${broken.message} ${next}` } };
  }
  if (report.rejectedCount === 0) return {};
  const message = `${countOf(report.rejectedCount, 'line')} refused, ${stored} ${dryRun ? 'would be stored' : 'stored'}. Correct what was refused and import it again.`;
  return { failure: refused('LINES_REFUSED', message) };
}

function readColumn(text: string): [from: string, to: string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new Error('must be written from=to, for example Name=title');
  return [text.slice(0, at), text.slice(at + 1)];
}
