import type { App } from '../../../src/app.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { parseExportQuery } from '../../../src/features/documents/query/parse-list-query.js';
import { exportDocuments, type ExportOptions } from '../../../src/features/documents/read/export-documents.js';
import { inChunks } from '../../../src/platform/database/in-chunks.js';
import { chooseCollection, collectionArgument, projectOption } from '../../ask/choose.js';
import { filterOption } from '../../ask/options.js';
import { choice, defineCommand, flag, option } from '../../shell/command.js';
import { Interrupted } from '../../view/exit.js';
import { findFormat, FORMATS, type Format, writeEntries } from '../../formats/entries.js';
import { replaceFile, resolveOutput } from '../../formats/output-file.js';
import { countOf } from '../../view/present.js';

const PROGRESS_STEP = 1000;

export default defineCommand({
  details:
    'Filters are those of "data query". Without --out, writes to standard output; --json writes one JSON array. The file appears when it is complete. "data import" reads every format back exactly. In CSV, an apostrophe precedes text that a spreadsheet would run as a formula, and the last column marks the file, so that the import removes it again.',
  examples: [
    'bsvc data export posts --project shop --out posts.ndjson',
    'bsvc data export posts --project shop --format csv > posts.csv',
    'bsvc data export posts --project shop --include-deleted | wc -l',
    'bsvc data export posts --project shop --filter views_gte=10 --out read.ndjson',
  ],
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    out: option('--out <file>', 'file to write'),
    format: choice<Format>('--format <format>', 'default: by the file’s name, else ndjson', FORMATS),
    filters: filterOption(['include_deleted']),
    includeDeleted: flag('--include-deleted', 'include documents in the trash'),
    onlyDeleted: flag('--only-deleted', 'only documents in the trash'),
    bom: flag('--bom', 'start with a byte order mark, so that Excel detects UTF-8'),
  },
  async run(context, input) {
    const { out } = input;
    const path = out === undefined ? null : await resolveOutput(context, out);
    const { app, collection } = await chooseCollection(context, input);
    const format =
      input.format ?? (out ? findFormat(out) : null) ?? (out === undefined && context.out.json ? 'json' : 'ndjson');
    const query = new URLSearchParams(input.filters);
    if (input.includeDeleted) query.set('include_deleted', 'true');
    if (input.onlyDeleted) query.set('include_deleted', 'only');
    const wanted = parseExportQuery(query.toString(), collection);
    const progress = await context.out.progress(`Exporting ${collection.name}`);
    let count = 0;
    const documents = async function* () {
      for await (const document of exportDocuments(app, collection, wanted)) {
        if (context.stop.aborted) throw new Interrupted();
        if (++count % PROGRESS_STEP === 0) progress.update(`${count} documents exported`);
        yield document;
      }
    };
    try {
      const columns = format === 'csv' ? await findColumns(app, collection, wanted) : [];
      const text = inChunks(writeEntries(documents(), format, columns, { mark: input.bom }));
      if (path === null) {
        for await (const chunk of text) await context.out.write(chunk);
        progress.stop();
        context.out.note(`Exported ${countOf(count, 'document')}.`);
        return;
      }
      await replaceFile(path, text);
    } finally {
      progress.stop();
    }
    return {
      json: { exported: count, collection: collection.name, file: out },
      quiet: count,
      text: () => `Exported ${countOf(count, 'document')} to ${out}.`,
    };
  },
});

/** The columns of CSV: the declared fields and whatever else occurs, then the system fields. */
async function findColumns(app: App, collection: Collection, options: ExportOptions): Promise<string[]> {
  const system = ['createdAt', 'updatedAt', ...(options.includeDeleted ? ['isDeleted', 'deletedAt'] : [])];
  const own = new Set(collection.fields.map(({ name }) => name));
  if (collection.rls) own.add(collection.rls.ownerField);
  for await (const document of exportDocuments(app, collection, options)) {
    for (const name of Object.keys(document)) own.add(name);
  }
  for (const name of ['_id', 'createdAt', 'updatedAt', 'isDeleted', 'deletedAt']) own.delete(name);
  return ['_id', ...own, ...system];
}
