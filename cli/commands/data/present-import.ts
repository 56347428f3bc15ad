import { countOf } from '../../view/present.js';
import type { ForeignReport } from '../../formats/foreign/store-in-batches.js';
import { type Failure, refused } from '../../view/exit.js';
import type { Result } from '../../view/output.js';

export const SHOWN_REJECTS = 20;

/** The outcome of importing a file of documents. */
export interface ImportReport {
  inserted: number;
  /** Found by `--key` and changed. */
  updated: number;
  /** Entries of the file that are done with, stored or refused. */
  read: number;
  rejectedCount: number;
  rejected: { line: number; message: string }[];
  notes: LineNote[];
}

/** What was stored as something else than it was, or left out; `line` is the first. */
interface LineNote {
  field: string;
  message: string;
  count: number;
  line: number;
}

function presentNotes(notes: readonly LineNote[]): string[] {
  return notes.map(({ field, message, count, line }) => {
    const where = count === 1 ? `line ${line}` : `${count} times, first in line ${line}`;
    return `  ${field === '' ? '' : `${field}: `}${message} (${where})`;
  });
}

/** The report for a person. */
export function presentImport(
  name: string,
  { inserted, updated, rejectedCount, rejected, notes }: ImportReport,
  { stops, dryRun }: { stops: boolean; dryRun: boolean },
): string {
  const changed = updated > 0 ? `, changed ${updated}` : '';
  const lines = [
    dryRun
      ? `${countOf(inserted, 'document')} would be imported into ${name}; unique values were not compared. Nothing was stored (--dry-run).`
      : `Imported ${countOf(inserted, 'document')} into ${name}${changed}.`,
  ];
  if (notes.length > 0) lines.push('Changed on the way:', ...presentNotes(notes));
  if (rejectedCount === 0) return lines.join('\n');
  lines.push(stops ? 'Stopped at the first refused line:' : `Refused ${rejectedCount}:`);
  for (const { line, message } of rejected.slice(0, SHOWN_REJECTS)) lines.push(`  line ${line}: ${message}`);
  if (rejectedCount > SHOWN_REJECTS) {
    lines.push(`  … and ${rejectedCount - SHOWN_REJECTS} more (--json lists up to 1000)`);
  }
  return lines.join('\n');
}

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
  const rejected = done.reduce((sum, { report }) => sum + report.rejectedCount, 0);
  const stored = done.reduce((sum, { report }) => sum + report.stored, 0);
  const broken = done.find((each) => each.broken)?.broken;
  const failure = broken ?? (rejected > 0 ? refusedLines(rejected) : undefined);
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
    text: (view) => {
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
      const lines = [view.table(head, rows), ...noted, ...presentRejects(done)];
      if (!dryRun && done.some(({ created }) => created)) {
        lines.push('Collections registered now are readable by the secret key alone: bsvc collection rls <name>.');
      }
      if (dryRun) lines.push('Nothing was stored (--dry-run); unique values were not compared.');
      return lines.join('\n');
    },
  };
}

export function refusedLines(count: number): Failure {
  const message = `${countOf(count, 'line')} refused. Correct what was refused and run it again: documents that are already present stay as they are.`;
  return refused('LINES_REFUSED', message);
}

/** The first refused lines, each with its reason. */
function presentRejects(done: readonly ForeignImport[]): string[] {
  const lines = done.flatMap(({ name, report }) =>
    report.rejected.map(({ line, message }) => `  ${name}, ${line}: ${message}`),
  );
  const more = lines.length > SHOWN_REJECTS ? [`  … and ${lines.length - SHOWN_REJECTS} more (--json lists them)`] : [];
  return lines.length === 0 ? [] : ['Refused:', ...lines.slice(0, SHOWN_REJECTS), ...more];
}
