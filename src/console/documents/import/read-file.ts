import Papa from 'papaparse';
import { findDelimiter, fitRow, readHead, rowReader, setPath } from '../../../exchange/csv-row.js';
import { findWrapped, type WantedList } from '../../../exchange/wrapped-list.js';
import type { CollectionField } from '../../collection.js';

type Row = Record<string, unknown>;

/** Where each column goes: a path of a field, or null for nowhere. */
export type Mapping = ReadonlyMap<string, string | null>;

/** A file taken apart. */
export interface ReadFile {
  columns: string[];
  count: number;
  /** The value of a column in the first row. */
  sample: (column: string) => unknown;
  /** The first documents under a mapping; texts of a CSV become values of the fields' types. */
  documents: (mapping: Mapping, fields: readonly CollectionField[], most?: number) => Row[];
}

/** Reads JSON (an array, an object a line, an object around a list) or CSV; throws what is wrong, with the line. */
export async function readFile(file: File, wanted: WantedList): Promise<ReadFile> {
  const text = await decode(file);
  const trimmed = text.trim();
  if (trimmed === '') throw new Error('The file is empty.');
  const isJson = trimmed.startsWith('[') || trimmed.startsWith('{');
  if (!isJson || /\.(csv|tsv)$/i.test(file.name)) return readCsv(text);
  const rows = trimmed.startsWith('[') ? readArray(JSON.parse(trimmed), 'Item') : readObjects(trimmed, wanted);
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return {
    columns,
    count: rows.length,
    sample: (column) => own(rows[0] ?? {}, column),
    documents: (mapping, _, most = rows.length) => rows.slice(0, most).map((row) => mapObject(row, mapping)),
  };
}

const own = (row: Row, name: string): unknown => (Object.hasOwn(row, name) ? row[name] : undefined);

/** UTF-8 and nothing else: other bytes would silently become other characters. */
async function decode(file: File): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error('The file is not UTF-8: save it as UTF-8.');
  }
}

function readArray(rows: unknown, what: string): Row[] {
  return (rows as unknown[]).map((row, at) => requireObject(row, `${what} ${at + 1}`));
}

/** Objects behind each other, each on a line; or one object, around a list. */
function readObjects(text: string, wanted: WantedList): Row[] {
  const [only] = parseWhole(text);
  const rows = only === undefined ? readLines(text) : [requireObject(only, 'The file')];
  const path = rows[0] && findWrapped(rows[0], wanted)?.path;
  if (!path) return rows;
  if (rows.length > 1) throw new Error('There are several lists in the file: import it on the command line.');
  return readArray(
    path.reduce<unknown>((value, name) => (value as Row)[name], rows[0]),
    'Item',
  );
}

function parseWhole(text: string): unknown[] {
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}

function readLines(text: string): Row[] {
  return text.split('\n').flatMap((line, at) => {
    if (line.trim() === '') return [];
    try {
      return [requireObject(JSON.parse(line), `Line ${at + 1}`)];
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new Error(`Line ${at + 1} is not JSON: ${error.message}`, { cause: error });
    }
  });
}

function requireObject(value: unknown, where: string): Row {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Row;
  throw new Error(`${where} is not an object.`);
}

function mapObject(row: Row, mapping: Mapping): Row {
  const document: Row = {};
  for (const [column, value] of Object.entries(row)) {
    const path = mapping.get(column);
    if (path !== undefined && path !== null) setPath(document, path.split('.'), value);
  }
  return document;
}

function readCsv(text: string): ReadFile {
  const plain = withPlainLines(text);
  const delimiter = findDelimiter(plain.split('\n', 1)[0]!);
  const { data, errors } = Papa.parse<string[]>(plain, { delimiter, newline: '\n' });
  const wrong = errors.find(({ type }) => type === 'Quotes');
  if (wrong) throw new Error(`Row ${(wrong.row ?? 0) + 1} has a quotation mark in the wrong place.`);
  const [first = [], ...others] = data;
  const head = readHead(first, delimiter);
  const rows = others.flatMap((row, at) => {
    if (row.every((cell) => cell === '')) return [];
    try {
      return [fitRow(head, row).map((cell) => (cell === '' ? null : cell))];
    } catch (error) {
      throw new Error(`Row ${at + 2}: ${(error as Error).message}.`, { cause: error });
    }
  });
  return {
    columns: head.columns.filter((_, at) => at !== head.mark),
    count: rows.length,
    sample: (column) => rows[0]?.[head.columns.indexOf(column)] ?? undefined,
    documents: (mapping, fields, most = rows.length) =>
      rows.slice(0, most).map(rowReader(head, fields, (column) => mapping.get(column) ?? null)),
  };
}

/**
 * The text with lines that end in one way outside of quotation marks. Throws for a quotation mark inside an unquoted
 * cell, which programs read in different ways.
 */
function withPlainLines(text: string): string {
  const parts = text.split('"');
  const plain = parts.map((part, at) => (at % 2 === 0 ? part.replace(/\r\n?/g, '\n') : part));
  const wrong = plain.findIndex(
    (part, at) => at % 2 === 0 && at < plain.length - 1 && !/[,;\t\n]$/.test(part) && part !== '',
  );
  if (wrong < 0) return plain.join('"');
  const row = plain
    .slice(0, wrong + 1)
    .join('')
    .split('\n').length;
  throw new Error(`Line ${row} has a quotation mark in the wrong place.`);
}

/** Columns to the fields of their names; others keep their own name where any field is let in. */
export function guessMapping({ columns }: ReadFile, fields: readonly CollectionField[], takesOthers: boolean): Mapping {
  const kept = new Set(['_id', 'createdAt', 'updatedAt', 'isDeleted', 'deletedAt']);
  return new Map(
    columns.map((column) => {
      const [root = column] = column.split('.');
      const same = fields.find(({ name }) => name.toLowerCase() === root.toLowerCase());
      if (same) return [column, same.name + column.slice(root.length)];
      return [column, kept.has(column) || takesOthers ? column : null];
    }),
  );
}
