import type { ForeignReport } from '../../formats/foreign/store-in-batches.js';
import { EXIT, type Failure } from '../../view/exit.js';
import { presentNotes, type LineNote } from './present-import.js';
import type { Result } from '../../view/output.js';
import { countOf } from '../../view/present-amount.js';

const SHOWN_REJECTS = 20;

/** The import of one collection of another service. */
export interface ForeignImport {
  name: string;
  /** The collection was registered by the import, for the secret key alone. */
  created: boolean;
  notes: string[];
  /** What was left out of documents, or stored as something else. */
  changed: LineNote[];
  report: ForeignReport;
  broken: Failure | null;
}

/** A table with a row for each collection, and what was refused. */
export function presentForeignImport(done: readonly ForeignImport[], dryRun: boolean): Result {
  const refused = done.reduce((sum, { report }) => sum + report.rejectedCount, 0);
  const stored = done.reduce((sum, { report }) => sum + report.stored, 0);
  const broken = done.find((each) => each.broken)?.broken;
  const failure = broken ?? (refused > 0 ? refusedLines(refused) : undefined);
  return {
    json: {
      dryRun,
      collections: done.map(({ name, created, notes, changed, report }) => ({
        name,
        created,
        notes,
        changed,
        ...report,
      })),
    },
    quiet: stored,
    ...(failure && { failure }),
    text: async (view) => {
      const head = [
        'collection',
        'registered',
        dryRun ? 'would be stored' : 'stored',
        'there already',
        'refused',
        'notes',
      ];
      const rows = done.map(({ name, created, notes, report }) => [
        name,
        created ? 'now' : 'before',
        report.stored,
        report.present,
        report.rejectedCount,
        notes.join('; '),
      ]);
      const changed = done.filter((each) => each.changed.length > 0);
      const noted = changed.flatMap((each) => [`Changed on the way to ${each.name}:`, ...presentNotes(each.changed)]);
      const lines = [await view.table(head, rows), ...noted, ...presentRejects(done)];
      if (!dryRun && done.some(({ created }) => created)) {
        lines.push('Collections registered now are readable by the secret key alone: bsvc collection rls <name>.');
      }
      if (dryRun) lines.push('Nothing was stored (--dry-run); unique values were not compared.');
      return lines.join('\n');
    },
  };
}

export function refusedLines(refused: number): Failure {
  const message = `${countOf(refused, 'line')} refused. Correct what was refused and run it again: what is there already stays as it is.`;
  return { exitCode: EXIT.refused, code: 'LINES_REFUSED', message };
}

/** The first refused lines, each with its reason. */
function presentRejects(done: readonly ForeignImport[]): string[] {
  const lines = done.flatMap(({ name, report }) =>
    report.rejected.map(({ line, message }) => `  ${name}, ${line}: ${message}`),
  );
  const more = lines.length > SHOWN_REJECTS ? [`  … and ${lines.length - SHOWN_REJECTS} more (--json lists them)`] : [];
  return lines.length === 0 ? [] : ['Refused:', ...lines.slice(0, SHOWN_REJECTS), ...more];
}
