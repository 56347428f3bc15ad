import { openDisplayNames } from '../../src/features/collections/display-names.js';
import { repairStore, hasStore, type RepairReport } from '../../src/platform/database/database.js';
import { conflict, missing } from '../../src/errors.js';
import type { Context } from '../shell/context.js';
import type { Result, TextStyle } from '../view/output.js';
import { countOf } from '../view/present.js';
import { Interrupted } from '../view/exit.js';

/** Lines of damage that are shown; --json has all. */
const MOST_LINES = 10;

/**
 * Copies every whole document of a damaged embedded database into a new file, builds damaged indexes again, checks the
 * result and puts it into place. Interrupted at any time, the database is as it was.
 */
export async function repair(context: Context, { dryRun }: { dryRun: boolean }): Promise<Result> {
  const { config } = context.settings();
  if (config.mongodbUri !== null) {
    throw conflict('NOT_EMBEDDED', 'The data is in MongoDB, which has its own repair; see its manual.');
  }
  if (!(await hasStore(config.dataDir))) {
    throw missing('NO_STORE', `There is no database in ${config.dataDir}. Check --data-dir and BSVC_DATA_DIR.`);
  }
  const progress = await context.out.progress('Reading the database');
  const report = await repairStore(config, {
    dryRun,
    signal: context.stop,
    onProgress: (step, done, all) => progress.update(all === null ? step : `${step}: ${done} of ${all} pages`),
  })
    .catch((error: unknown) => {
      throw context.stop.aborted ? new Interrupted() : error;
    })
    .finally(() => progress.stop());
  // That it opens is the last proof; the run is recorded there.
  if (report.damagedFile !== null) await context.app('diagnosis');
  const { problems, collections, documents, damagedFile } = report;
  const named = await openDisplayNames(problems.length > 0 ? await context.app('diagnosis').catch(() => null) : null);
  return {
    json: { whole: problems.length === 0, dryRun, problems, collections, documents, damagedFile },
    quiet: damagedFile ?? 'unchanged',
    text: (view) => presentRepair(view, report, dryRun, named),
  };
}

function presentRepair(
  view: TextStyle,
  report: RepairReport,
  dryRun: boolean,
  named: (text: string) => string,
): string {
  const { problems, collections, documents, damagedFile } = report;
  if (problems.length === 0) return 'The database is intact: there is nothing to repair.';
  const rows = collections.map(({ ns, documents, lost, uncertain, rebuilt, logBeginsAnew }) => [
    named(ns.slice(ns.indexOf('.') + 1)),
    documents,
    lost ?? 'unknown',
    uncertain,
    rebuilt.join(', '),
    logBeginsAnew ? 'begins anew' : '',
  ]);
  const more = problems.length > MOST_LINES ? [`… and ${problems.length - MOST_LINES} more: --json lists all.`] : [];
  return [
    'Damaged:',
    ...[...problems.slice(0, MOST_LINES), ...more].map((line) => `  ${view.hang(2, named(line))}`),
    '',
    ...(rows.length > 0
      ? [
          view.table(
            ['collection', 'documents kept', 'lost', 'uncertain', 'indexes built anew', 'log of changes'],
            rows,
          ),
          '',
        ]
      : []),
    ...collections.flatMap(({ ns, ids, lost, uncertain, uncertainIds, notes }) => [
      ...(ids.length > 0
        ? [`Lost of ${named(ns)}: ${ids.join(', ')}${lost !== null && lost > ids.length ? ', …' : ''}`]
        : []),
      ...(uncertain > 0
        ? [
            `Left out of ${named(ns)}, because they may have been deleted or changed: ${uncertainIds.join(', ')}${uncertain > uncertainIds.length ? ', …' : ''}`,
          ]
        : []),
      ...notes.map((note) => `${named(ns)}: ${note}`),
    ]),
    dryRun
      ? `${countOf(documents, 'document')} would be kept. Nothing was changed (--dry-run).`
      : `${countOf(documents, 'document')} were kept. The damaged file is ${damagedFile}.`,
    ...(collections.length === 0 && !dryRun ? ['No documents or index entries were lost.'] : []),
  ].join('\n');
}
