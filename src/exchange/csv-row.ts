/** As much of a declared field as the reading of a cell asks for. */
export interface CellShape {
  type: string;
  fields?: readonly (CellShape & { name: string })[];
}

type Named = CellShape & { name: string };

/**
 * The name of the last column of our own exports. In such a file a leading apostrophe belongs to the file, not to the
 * text, and a cell of this column names the columns whose text would otherwise be read as JSON.
 */
const EXPORT_COLUMN = 'bsvc-csv/1';

/** How text begins that a spreadsheet would run as a formula, cut, or take for our own apostrophe. */
const NEEDS_APOSTROPHE = /^(['=+\-@＝＋－＠\s]|$)/;

/** Text that could be read as a JSON value of another type. */
const LIKE_JSON = /^[\d[{tfn]/;

/** The head row of an export. */
export function headCells(columns: readonly string[]): string[] {
  return [...columns.map((name) => (name === EXPORT_COLUMN ? `'${name}` : protect(name))), EXPORT_COLUMN];
}

/** One document of an export as cells; `rowReader` gives it back exactly, whatever fields are declared there. */
export function documentCells(columns: readonly string[], document: Readonly<Record<string, unknown>>): string[] {
  const texts: string[] = [];
  const cells = columns.map((column) => {
    const value = Object.hasOwn(document, column) ? document[column] : undefined;
    if (value === undefined) return '';
    const json = JSON.stringify(value);
    if (!json.startsWith('"')) return json;
    const text = JSON.parse(json) as string;
    if (readJson(text) !== undefined) texts.push(column);
    return protect(text);
  });
  return [...cells, texts.length === 0 ? '' : JSON.stringify(texts)];
}

const protect = (text: string): string => (NEEDS_APOSTROPHE.test(text) ? `'${text}` : text);

export interface Head {
  columns: string[];
  /** Position of `EXPORT_COLUMN`; -1 in files of other programs. */
  mark: number;
  delimiter: string;
  /** Cells of the head row, those without a name at its end included. */
  width: number;
}

/** Reads the head row; throws what is wrong with it. */
export function readHead(cells: readonly string[], delimiter: string): Head {
  const named = withoutEmptyEnd(cells.map((cell) => cell.trim()));
  const mark = named.indexOf(EXPORT_COLUMN);
  const columns = mark < 0 ? named : named.map((_, at) => withoutApostrophe(cells[at]!) ?? cells[at]!);
  const seen = new Set<string>();
  for (const [at, name] of columns.entries()) {
    if (at === mark) continue;
    if (mark < 0 && name === '') throw new Error('a column has no name');
    if (seen.has(name)) throw new Error(`two columns are named "${name}"`);
    seen.add(name);
  }
  return { columns, mark, delimiter, width: cells.length };
}

/** The cells under the columns; throws for a row of another length. Null is an empty cell. */
export function fitRow<Cell extends string | null>(head: Head, row: readonly Cell[]): Cell[] {
  const cells = row.length > head.columns.length ? withoutEmptyEnd(row, head.columns.length) : [...row];
  if (cells.length === head.columns.length) return cells;
  if (cells.length > head.columns.length && cells.length <= head.width) throw new Error('a column has no name');
  throw new Error(`${row.length} cells under ${head.columns.length} column names`);
}

/** Spreadsheets end every row with as many delimiters as some row once had. */
function withoutEmptyEnd<Cell extends string | null>(cells: readonly Cell[], least = 1): Cell[] {
  let end = cells.length;
  while (end > least && (cells[end - 1] === '' || cells[end - 1] === null)) end--;
  return cells.slice(0, end);
}

const SYSTEM_FIELDS: readonly Named[] = [
  { name: '_id', type: 'String' },
  { name: 'isDeleted', type: 'Boolean' },
  ...['deletedAt', 'createdAt', 'updatedAt'].map((name) => ({ name, type: 'Date' })),
];

/**
 * A reader of rows as documents: an empty cell is an absent field, `a.b` a field inside `a`, and a cell is read by its
 * declared type. A cell that does not read as its type stays text, so that the check of documents refuses it by name.
 * Cells of undeclared fields are text, except in our own exports. `pathOf` is the field that a column goes to; null
 * leaves it out.
 */
export function rowReader(
  head: Head,
  declared: readonly Named[],
  pathOf: (column: string) => string | null = (column) => column,
): (cells: readonly (string | null)[]) => Record<string, unknown> {
  const fields = [...SYSTEM_FIELDS, ...declared];
  const targets = head.columns.flatMap((column, at) => {
    const path = at === head.mark ? undefined : pathOf(column)?.split('.');
    return path ? [{ at, column, path, shape: findShape(fields, path) }] : [];
  });
  return (cells) => {
    const texts = head.mark < 0 ? [] : listTexts(cells[head.mark]);
    const document: Record<string, unknown> = {};
    for (const { at, column, path, shape } of targets) {
      const cell = cells[at] ?? null;
      if (cell === null) continue;
      const value =
        head.mark < 0
          ? readCell(shape, cell, head.delimiter)
          : readOwn(shape, cell, texts.includes(column), head.delimiter);
      if (value !== undefined) setPath(document, path, value);
    }
    return document;
  };
}

function listTexts(cell: string | null | undefined): string[] {
  const names = readJson(cell ?? '');
  return Array.isArray(names) ? names.map(String) : [];
}

function findShape(fields: readonly Named[] | undefined, [name, ...rest]: readonly string[]): CellShape | undefined {
  const field = fields?.find((each) => each.name === name);
  return rest.length === 0 ? field : findShape(field?.fields, rest);
}

const TEXT_TYPES: ReadonlySet<string> = new Set(['String', 'Ref', 'Date']);

/** A cell of our own export. */
function readOwn(shape: CellShape | undefined, cell: string, isText: boolean, delimiter: string): unknown {
  if (cell === '') return undefined;
  const text = withoutApostrophe(cell) ?? (isText ? cell : undefined);
  if (text !== undefined) return text;
  if (cell === 'null') return null;
  if (shape && TEXT_TYPES.has(shape.type)) return cell;
  const json = readJson(cell);
  return json === undefined ? readCell(shape, cell, delimiter) : json;
}

const withoutApostrophe = (cell: string): string | undefined => (cell.startsWith("'") ? cell.slice(1) : undefined);

/** The JSON value that text is, unless it is a string; undefined for other text. */
function readJson(text: string): unknown {
  if (!LIKE_JSON.test(text) && !text.startsWith('-')) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function readCell(shape: CellShape | undefined, cell: string, delimiter: string): unknown {
  const type = shape?.type;
  // Written as "" by programs that write nothing at all where there is no value.
  if (cell === '') return type === 'String' || type === undefined ? '' : undefined;
  if (type === 'Number') return readNumber(cell.trim(), delimiter) ?? cell;
  if (type === 'Boolean') return BOOLEANS.get(cell.trim().toLowerCase()) ?? cell;
  if (type !== 'Object' && type !== 'Array') return cell;
  return readJson(cell.trim()) ?? cell;
}

/** As spreadsheets, people and PostgreSQL write them. */
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['yes', true],
  ['t', true],
  ['1', true],
  ['false', false],
  ['no', false],
  ['f', false],
  ['0', false],
]);

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const DECIMAL_COMMA = /^-?(\d+|\d{1,3}(\.\d{3})+),\d+$/;

function readNumber(cell: string, delimiter: string): number | undefined {
  const text = delimiter !== ',' && DECIMAL_COMMA.test(cell) ? cell.replaceAll('.', '').replace(',', '.') : cell;
  if (!DECIMAL.test(text) || losesDigits(text)) return undefined;
  return Number(text);
}

/** From here on JSON is written with an exponent, which is no claim to all digits. */
const WRITTEN_WITH_EXPONENT = 1e21;

/**
 * True if the number that text in digits becomes is another one: whole numbers beyond 2^53, and decimals of more than
 * 17 digits, which no double has.
 */
export function losesDigits(text: string): boolean {
  const number = Number(text);
  const isLong = Number.isInteger(number) && !Number.isSafeInteger(number);
  if (!Number.isFinite(number) || (isLong && Math.abs(number) < WRITTEN_WITH_EXPONENT)) return true;
  const [digits] = plainDigits(text).split('e') as [string];
  return digits.length > 17 && plainDigits(text) !== plainDigits(String(number));
}

/** A decimal as its digits and an exponent, the same for all ways to write it. */
function plainDigits(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  return `${short}e${short === '' ? 0 : Number(exponent) - fraction.length + digits.length - short.length}`;
}

/**
 * Sets the value at a path that comes from outside. Names are defined, not assigned: `__proto__` is a name like any
 * other here, never the way to the prototype of everything, and the check of documents refuses it.
 */
export function setPath(into: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  const own = Object.hasOwn(into, name) ? into[name] : undefined;
  const inner = typeof own === 'object' && own !== null ? (own as Record<string, unknown>) : {};
  if (rest.length > 0) setPath(inner, rest, value);
  const next = rest.length === 0 ? value : inner;
  Object.defineProperty(into, name, { value: next, enumerable: true, writable: true, configurable: true });
}

const DELIMITERS = [',', ';', '\t'];

/** The delimiter that the head row uses most, outside of quotation marks. */
export function findDelimiter(head: string): string {
  const bare = head.replace(/"(?:[^"]|"")*"?/g, '');
  const count = (delimiter: string): number => bare.split(delimiter).length;
  return DELIMITERS.reduce((best, each) => (count(each) > count(best) ? each : best));
}
