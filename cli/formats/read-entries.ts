import type { Entry } from './entry.js';
import { readCsv } from './csv.js';
import { readJsonArray } from './json-array.js';
import { readNdjson } from './ndjson.js';

export const FORMATS = ['ndjson', 'json', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

export interface ReadOptions {
  /** Turns a row of a CSV file into a document. */
  readRow: (row: ReadonlyMap<string, string>, delimiter: string) => unknown;
}

/**
 * Reads a file of documents piece by piece: memory does not grow with its size. A broken entry is reported and the next
 * one is read.
 */
export function readEntries(chunks: AsyncIterable<Buffer>, format: Format, options: ReadOptions): AsyncIterable<Entry> {
  if (format === 'ndjson') return readNdjson(chunks);
  if (format === 'json') return readJsonArray(chunks);
  return readCsv(chunks, options.readRow);
}

/** The format by a file's name, or null. */
export function findFormat(file: string): Format | null {
  if (/\.(ndjson|jsonl)$/i.test(file)) return 'ndjson';
  if (/\.json$/i.test(file)) return 'json';
  return /\.[ct]sv$/i.test(file) ? 'csv' : null;
}
