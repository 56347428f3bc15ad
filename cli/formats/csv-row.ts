import type { Field, FieldShape } from '../../src/features/collections/fields/field.js';

/**
 * A CSV row as a document: an empty cell is an absent field, `a.b` a field inside `a`, and the declared type says how a
 * cell is read. A cell that does not read as its type stays text, so that the collection's own check refuses it by
 * name. Cells of undeclared fields are text.
 */
export function readCsvRow(fields: readonly Field[], row: ReadonlyMap<string, string>): Record<string, unknown> {
  const document: Record<string, unknown> = {};
  for (const [name, cell] of row) {
    if (cell !== '') place(document, name.split('.'), readCell(findShape(fields, name.split('.')), cell));
  }
  return document;
}

function findShape(fields: readonly Field[] | undefined, [name, ...rest]: string[]): FieldShape | undefined {
  const field = fields?.find((each) => each.name === name);
  return rest.length === 0 ? field : findShape(field?.fields, rest);
}

function readCell(shape: FieldShape | undefined, cell: string): unknown {
  if (shape?.type === 'Number') return cell.trim() !== '' && Number.isFinite(Number(cell)) ? Number(cell) : cell;
  if (shape?.type === 'Boolean') return cell === 'true' ? true : cell === 'false' ? false : cell;
  if (shape?.type !== 'Object' && shape?.type !== 'Array') return cell;
  try {
    return JSON.parse(cell) as unknown;
  } catch {
    return cell;
  }
}

function place(into: Record<string, unknown>, [name, ...rest]: string[], value: unknown): void {
  const own = Object.hasOwn(into, name!) ? into[name!] : undefined;
  const next = rest.length === 0 ? value : typeof own === 'object' && own !== null ? own : {};
  // Defined, not assigned: a column named __proto__ is data like any other, and refused by the check of documents.
  Object.defineProperty(into, name!, { value: next, enumerable: true, writable: true, configurable: true });
  if (rest.length > 0) place(next as Record<string, unknown>, rest, value);
}
