import { countOf } from '../../view/present-amount.js';

const SHOWN_REJECTS = 20;

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
export interface LineNote {
  field: string;
  message: string;
  count: number;
  line: number;
}

export function presentNotes(notes: readonly LineNote[]): string[] {
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
