import type { WantedList } from '../../src/exchange/wrapped-list.js';
import { readCsv, type OpenRows } from './csv.js';
import type { Entry } from './parse-entry.js';
import { readJson } from './json.js';
import { readNdjson } from './ndjson.js';

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
