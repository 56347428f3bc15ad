import type { CollectionField } from '../../collection.js';

/** A file taken apart: objects, or lines of texts under the names of their columns. */
export interface ReadFile {
  columns: string[];
  rows: Record<string, unknown>[];
  /** Every value is a text: of a CSV. */
  isText: boolean;
}

/** Reads JSON (an array, or one object a line) or CSV; throws what is wrong, with the line. */
export function readFile(name: string, text: string): ReadFile {
  const trimmed = text.replace(/^\uFEFF/, '').trim();
  if (trimmed === '') throw new Error('The file is empty.');
  const isJson = trimmed.startsWith('[') || trimmed.startsWith('{');
  if (!isJson || /\.(csv|tsv)$/i.test(name)) return readCsv(trimmed);
  const rows = trimmed.startsWith('[') ? readArray(trimmed) : readLines(trimmed);
  return { columns: [...new Set(rows.flatMap((row) => Object.keys(row)))], rows, isText: false };
}

type Row = Record<string, unknown>;

function readArray(text: string): Row[] {
  const rows = JSON.parse(text) as unknown[];
  return rows.map((row, at) => requireObject(row, `Item ${at + 1}`));
}

function readLines(text: string): Row[] {
  const lines = text.split('\n');
  return lines.flatMap((line, at) => {
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

function readCsv(text: string): ReadFile {
  const head = text.split('\n', 1)[0]!;
  const separator = [',', ';', '\t'].sort((a, b) => head.split(b).length - head.split(a).length)[0]!;
  const [columns = [], ...lines] = cells(text, separator);
  const twice = columns.find((column, at) => columns.indexOf(column) !== at);
  if (twice !== undefined) throw new Error(`The column ${twice === '' ? 'without a name' : twice} is there twice.`);
  const rows = lines.map((line, at) => {
    if (line.length > columns.length) throw new Error(`Row ${at + 2} has more cells than the first one has names.`);
    return Object.fromEntries(line.map((value, index) => [columns[index]!, value]));
  });
  return { columns, rows, isText: true };
}

/** Cells of a CSV by line (RFC 4180): quoted ones may hold separators, line ends and doubled quotes. */
function cells(text: string, separator: string): string[][] {
  const lines: string[][] = [];
  let line: string[] = [];
  let at = 0;
  for (;;) {
    let value: string;
    if (text[at] === '"') {
      value = '';
      for (;;) {
        const end = text.indexOf('"', at + 1);
        if (end < 0) throw new Error(`Row ${lines.length + 1} has a quote that never ends.`);
        value += text.slice(at + 1, end);
        at = end + 1;
        if (text[at] !== '"') break;
        value += '"';
      }
    } else {
      const start = at;
      while (at < text.length && text[at] !== separator && text[at] !== '\n') at++;
      value = text.slice(start, at).trim();
    }
    if (text[at] === '\r') at++;
    line.push(value);
    if (at >= text.length || text[at] === '\n') {
      lines.push(line);
      line = [];
      if (at >= text.length) return lines;
    } else if (text[at] !== separator) {
      throw new Error(`Row ${lines.length + 1} has text behind a closing quote.`);
    }
    at++;
  }
}

/** Where each column goes: a path of a field, or null for nowhere. */
export type Mapping = Readonly<Record<string, string | null>>;

/** Columns to the fields of their names; others keep their own name where any field is let in. */
export function guessMapping({ columns }: ReadFile, fields: readonly CollectionField[], takesOthers: boolean): Mapping {
  const kept = new Set(['_id', 'createdAt', 'updatedAt', 'isDeleted', 'deletedAt']);
  return Object.fromEntries(
    columns.map((column) => {
      const [root = column] = column.split('.');
      const same = fields.find(({ name }) => name.toLowerCase() === root.toLowerCase());
      if (same) return [column, same.name + column.slice(root.length)];
      return [column, kept.has(column) || takesOthers ? column : null];
    }),
  );
}

/** The documents of a file under a mapping; texts of a CSV become values of the fields' types. */
export function mapRows({ rows, isText }: ReadFile, mapping: Mapping, fields: readonly CollectionField[]): Row[] {
  return rows.map((row) => {
    const document: Row = {};
    for (const [column, value] of Object.entries(row)) {
      const path = mapping[column];
      if (path === undefined || path === null) continue;
      const typed = isText ? readCell(value as string, typeAt(path, fields)) : value;
      if (typed !== undefined) setAt(document, path, typed);
    }
    return document;
  });
}

function typeAt(path: string, fields: readonly CollectionField[]): string {
  const [first, ...rest] = path.split('.');
  const field = fields.find(({ name }) => name === first);
  return rest.length > 0 && field?.fields ? typeAt(rest.join('.'), field.fields) : (field?.type ?? 'any');
}

/** A cell's value; what is no value of the type stays a text, which the server refuses by its field's name. */
function readCell(text: string, type: string): unknown {
  if (text === '') return undefined;
  if (type === 'String' || type === 'Ref') return text;
  if (type === 'Date') {
    const date = new Date(text);
    return Number.isNaN(date.getTime()) ? text : date.toISOString();
  }
  if (type === 'Boolean') return /^(true|yes|1)$/i.test(text) ? true : /^(false|no|0)$/i.test(text) ? false : text;
  if (type === 'Array' && !text.startsWith('[')) return text.split(/[;,]/).map((each) => each.trim());
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'number' && String(value) !== text && type === 'any' ? text : value;
  } catch {
    return text;
  }
}

function setAt(document: Row, path: string, value: unknown): void {
  const [first = path, ...rest] = path.split('.');
  if (rest.length === 0) {
    document[first] = value;
    return;
  }
  const inner = document[first];
  const next = typeof inner === 'object' && inner !== null ? (inner as Row) : {};
  document[first] = next;
  setAt(next, rest.join('.'), value);
}
