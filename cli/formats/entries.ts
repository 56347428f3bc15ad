import type { WantedList } from '../../src/exchange/wrapped-list.js';
import { readCsv, type OpenRows } from './csv.js';
import { readNdjson, readJson } from './json.js';
import type { Entry } from './entry.js';
import { documentCells, headCells } from '../../src/exchange/csv-row.js';
import { conflict } from '../../src/errors.js';

export const FORMATS = ['ndjson', 'json', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

export interface ReadOptions {
  /** Turns rows of a CSV file into documents. */
  openRows: OpenRows;
  /** The collection that the documents belong to: a list under its name may be wrapped in an object. */
  list: WantedList;
}

/**
 * Reads a file of documents piece by piece: memory does not grow with its size. A broken entry is reported and the next
 * one is read.
 */
export function readEntries(chunks: AsyncIterable<Buffer>, format: Format, options: ReadOptions): AsyncIterable<Entry> {
  if (format === 'ndjson') return readNdjson(chunks, options.list);
  if (format === 'json') return readJson(chunks, options.list);
  return readCsv(chunks, options.openRows);
}

/** The format by a file's name, or null. */
export function findFormat(file: string): Format | null {
  if (/\.(ndjson|jsonl)$/i.test(file)) return 'ndjson';
  if (/\.json$/i.test(file)) return 'json';
  return /\.[ct]sv$/i.test(file) ? 'csv' : null;
}

type StoredFields = Record<string, unknown>;

/** Documents as the text of a file, piece by piece. `columns` are those of CSV, without the one that marks an export.
 * `mark`: begin with a byte order mark. */
export async function* writeEntries(
  documents: AsyncIterable<StoredFields>,
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
