import type { Field, FieldShape } from '../../src/features/collections/fields/field.js';

export interface CsvOptions {
  /** Of the file: beside semicolons and tabs a comma may be the decimal one. */
  delimiter?: string;
  /** Fields that columns of other names are read as. */
  renamed?: ReadonlyMap<string, string>;
}

/**
 * A CSV row as a document: an empty cell is an absent field, `a.b` a field inside `a`, and the declared type says how a
 * cell is read. A cell that does not read as its type stays text, so that the collection's own check refuses it by
 * name. Cells of undeclared fields are text.
 */
export function readCsvRow(
  fields: readonly Field[],
  row: ReadonlyMap<string, string>,
  { delimiter = ',', renamed = new Map() }: CsvOptions = {},
): Record<string, unknown> {
  const document: Record<string, unknown> = {};
  for (const [column, cell] of row) {
    const path = (renamed.get(column) ?? column).split('.');
    if (cell !== '') place(document, path, readCell(findShape(fields, path), cell, delimiter));
  }
  return document;
}

function findShape(fields: readonly Field[] | undefined, [name, ...rest]: string[]): FieldShape | undefined {
  const field = fields?.find((each) => each.name === name);
  return rest.length === 0 ? field : findShape(field?.fields, rest);
}

function readCell(shape: FieldShape | undefined, cell: string, delimiter: string): unknown {
  if (shape?.type === 'Number') return readNumber(cell.trim(), delimiter) ?? cell;
  if (shape?.type === 'Boolean') return BOOLEANS.get(cell.trim().toLowerCase()) ?? cell;
  if (shape?.type !== 'Object' && shape?.type !== 'Array') return cell;
  try {
    return JSON.parse(cell) as unknown;
  } catch {
    return cell;
  }
}

/** As spreadsheets and people write them. */
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['yes', true],
  ['1', true],
  ['false', false],
  ['no', false],
  ['0', false],
]);

const DECIMAL_COMMA = /^-?(\d+|\d{1,3}(\.\d{3})+),\d+$/;

function readNumber(cell: string, delimiter: string): number | undefined {
  const text = delimiter !== ',' && DECIMAL_COMMA.test(cell) ? cell.replaceAll('.', '').replace(',', '.') : cell;
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined;
}

function place(into: Record<string, unknown>, [name, ...rest]: string[], value: unknown): void {
  const own = Object.hasOwn(into, name!) ? into[name!] : undefined;
  const next = rest.length === 0 ? value : typeof own === 'object' && own !== null ? own : {};
  // Defined, not assigned: a column named __proto__ is data like any other, and refused by the check of documents.
  Object.defineProperty(into, name!, { value: next, enumerable: true, writable: true, configurable: true });
  if (rest.length > 0) place(next as Record<string, unknown>, rest, value);
}
