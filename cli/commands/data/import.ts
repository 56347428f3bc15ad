import { createReadStream } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { importDocuments } from '../../../src/features/documents/bulk/import-documents.js';
import { chooseCollection } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { argument, choice, defineCommand, flag, value } from '../../shell/command.js';
import type { Context } from '../../shell/context.js';
import { EXIT, Interrupted, UsageError } from '../../shell/exit.js';
import { readCsvRow } from '../../formats/csv-row.js';
import { findFormat, FORMATS, readEntries, type Format } from '../../formats/read-entries.js';
import { countOf } from '../../shell/present-amount.js';
import { readWhole } from '../../shell/read-whole.js';

const BATCH_DOCUMENTS = 500;
/** A batch of large documents ends here, so that they do not pile up in memory. */
const BATCH_CHARACTERS = 4 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const MAX_LISTED_REJECTS = 1000;
const SHOWN_REJECTS = 20;

interface Rejected {
  line: number;
  message: string;
}

export default defineCommand({
  details: [
    'NDJSON: one document per line. JSON: an array of documents. CSV: a head row, a.b for nested fields; cells are read by the declared types.',
    'Lines that are refused are reported with their numbers; --on-error stop ends at the first one. What was stored before stays.',
    'Ids and times of an export are kept, so an interrupted import can be repeated: what is there already is reported and not stored twice.',
  ].join('\n'),
  examples: [
    'bsvc data import posts posts.ndjson --project shop',
    'bsvc data import countries countries.json --project shop --on-error stop',
    'gunzip -c events.ndjson.gz | bsvc data import events - --format ndjson --project shop',
  ],
  audited: ({ dryRun }) => !dryRun,
  parameters: {
    collection: argument('collection', 'name of the collection'),
    file: argument('file', 'file to read; - for standard input'),
    project: projectOption,
    format: choice<Format>('--format <format>', 'of the file (default: by its name)', FORMATS),
    onError: choice('--on-error <action>', 'when a line is refused (default: continue)', ['continue', 'stop']),
    batch: value('--batch <n>', `documents stored at once (default: ${BATCH_DOCUMENTS})`, readWhole(1, 9999)),
    dryRun: flag('--dry-run', 'only check every line against the fields of the collection'),
  },
  async run(context, input) {
    const format = input.format ?? findFormat(input.file);
    if (!format) throw new UsageError(`Add --format ${FORMATS.join('|')}: the name "${input.file}" does not tell it.`);
    await checkSource(context, input.file);
    const { app, collection } = await chooseCollection(context, input);
    const progress = await context.out.progress(`Importing ${basename(input.file)}`);
    const report = { inserted: 0, rejectedCount: 0, rejected: [] as Rejected[] };
    const reject = (line: number, message: string): void => {
      report.rejectedCount++;
      if (report.rejected.length < MAX_LISTED_REJECTS) report.rejected.push({ line, message });
    };
    const store = async (batch: { line: number; value: unknown }[]): Promise<void> => {
      if (batch.length === 0) return;
      const outcome = await importDocuments(
        app,
        collection,
        batch.map((entry) => entry.value),
        { dryRun: input.dryRun },
      );
      report.inserted += outcome.inserted;
      for (const { index, message } of outcome.rejected) reject(batch[index]!.line, message);
      progress.update(
        `${report.inserted} documents ${input.dryRun ? 'fit' : 'stored'}, ${report.rejectedCount} refused`,
      );
    };
    const size = input.onError === 'stop' ? 1 : (input.batch ?? BATCH_DOCUMENTS);
    const stopping = (): boolean => input.onError === 'stop' && report.rejectedCount > 0;
    let batch: { line: number; value: unknown }[] = [];
    let waiting = 0;
    const readRow = (row: ReadonlyMap<string, string>): unknown => readCsvRow(collection.fields, row);
    try {
      for await (const entry of readEntries(openSource(context, input.file), format, { readRow })) {
        if (context.stop.aborted) throw new Interrupted();
        if ('problem' in entry) reject(entry.line, entry.problem);
        else batch.push(entry);
        waiting += 'length' in entry ? entry.length : 0;
        if (batch.length >= size || waiting >= BATCH_CHARACTERS) {
          await store(batch);
          batch = [];
          waiting = 0;
        }
        if (stopping()) break;
      }
      if (!stopping()) await store(batch);
    } finally {
      progress.stop();
    }
    // Lines that do not parse are found earlier than lines that the batch refuses.
    report.rejected.sort((a, b) => a.line - b.line);
    return {
      json: {
        ...report,
        ...(input.dryRun && { inserted: 0, fitting: report.inserted, dryRun: true }),
        collection: collection.name,
      },
      quiet: report.inserted,
      ...(report.rejectedCount > 0 && {
        failure: {
          exitCode: EXIT.refused,
          code: 'LINES_REFUSED',
          message: `${countOf(report.rejectedCount, 'line')} refused, ${countOf(report.inserted, 'document')} ${input.dryRun ? 'would be stored' : 'stored'}. Correct what was refused and import it again.`,
        },
      }),
      text: () => presentReport(collection.name, report, { stops: input.onError === 'stop', dryRun: input.dryRun }),
    };
  },
});

/** Refuses what cannot be read before anything is connected. */
async function checkSource(context: Context, file: string): Promise<void> {
  if (file !== '-') await access(resolve(context.io.cwd, file), constants.R_OK);
  else if (context.io.stdin.isTTY) {
    throw new UsageError('Standard input is a terminal: pipe the documents in, or name a file.');
  }
}

function openSource(context: Context, file: string): AsyncIterable<Buffer> {
  if (file === '-') return context.io.stdin as AsyncIterable<Buffer>;
  return createReadStream(resolve(context.io.cwd, file), { highWaterMark: CHUNK_BYTES, signal: context.stop });
}

function presentReport(
  name: string,
  { inserted, rejectedCount, rejected }: { inserted: number; rejectedCount: number; rejected: Rejected[] },
  { stops, dryRun }: { stops: boolean; dryRun: boolean },
): string {
  const lines = [
    dryRun
      ? `${countOf(inserted, 'document')} would be imported into ${name}; unique values were not compared. Nothing was stored (--dry-run).`
      : `Imported ${countOf(inserted, 'document')} into ${name}.`,
  ];
  if (rejectedCount === 0) return lines[0]!;
  lines.push(stops ? 'Stopped at the first refused line:' : `Refused ${rejectedCount}:`);
  for (const { line, message } of rejected.slice(0, SHOWN_REJECTS)) lines.push(`  line ${line}: ${message}`);
  if (rejectedCount > SHOWN_REJECTS)
    lines.push(`  … and ${rejectedCount - SHOWN_REJECTS} more (--json lists up to ${MAX_LISTED_REJECTS})`);
  return lines.join('\n');
}
