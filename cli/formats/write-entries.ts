import type { Format } from './read-entries.js';

type Entry = Record<string, unknown>;

/**
 * Documents as the text of a file, piece by piece. `columns` are the head row of CSV; nested values are JSON inside a
 * cell there.
 */
export async function* writeEntries(
  documents: AsyncIterable<Entry>,
  format: Format,
  columns: readonly string[],
): AsyncGenerator<string> {
  if (format === 'csv') yield `${columns.map(quoteCell).join(',')}\r\n`;
  if (format === 'json') yield '[';
  let first = true;
  for await (const document of documents) {
    if (format === 'ndjson') yield `${JSON.stringify(document)}\n`;
    else if (format === 'json') yield `${first ? '\n' : ',\n'}${JSON.stringify(document)}`;
    else yield `${columns.map((column) => quoteCell(presentCell(document[column]))).join(',')}\r\n`;
    first = false;
  }
  if (format === 'json') yield first ? ']\n' : '\n]\n';
}

function presentCell(value: unknown): string {
  if (value === undefined || value === null) return '';
  const plain = JSON.parse(JSON.stringify(value)) as unknown;
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}

function quoteCell(text: string): string {
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
