import { documentCells, headCells } from '../../src/exchange/csv-row.js';
import { conflict } from '../../src/errors.js';
import type { Format } from './read-entries.js';

type Entry = Record<string, unknown>;

/** Documents as the text of a file, piece by piece. `columns` are those of CSV, without the one that marks an export.
 * `mark`: begin with a byte order mark. */
export async function* writeEntries(
  documents: AsyncIterable<Entry>,
  format: Format,
  columns: readonly string[],
  { mark = false }: { mark?: boolean } = {},
): AsyncGenerator<string> {
  if (mark) yield '\ufeff';
  // Without the trash these two say nothing.
  const known = new Set([...columns, 'isDeleted', 'deletedAt']);
  if (format === 'csv') yield lineOf(headCells(columns));
  if (format === 'json') yield '[';
  let first = true;
  for await (const document of documents) {
    if (format === 'ndjson') {
      yield `${JSON.stringify(document)}\n`;
    } else if (format === 'json') {
      yield `${first ? '\n' : ',\n'}${JSON.stringify(document)}`;
    } else {
      if (!Object.keys(document).every((name) => known.has(name))) {
        throw conflict('CHANGED_MEANWHILE', 'Documents got further fields during the export: run it again');
      }
      yield lineOf(documentCells(columns, document));
    }
    first = false;
  }
  if (format === 'json') yield first ? ']\n' : '\n]\n';
}

const lineOf = (cells: readonly string[]): string => `${cells.map(quoteCell).join(',')}\r\n`;

function quoteCell(text: string): string {
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
