import type { Collection, CollectionField, FieldShape } from '../../collection.js';
import { forgetSetting, keepSetting, readSetting } from '../../session.js';

/** A column of the grid: a field of the documents, or one that the service keeps. */
export interface GridColumn {
  name: string;
  /** Pixels. */
  width: number;
}

const SYSTEM: readonly CollectionField[] = [
  { name: 'createdAt', type: 'Date' },
  { name: 'updatedAt', type: 'Date' },
];
export const TRASHED: CollectionField = { name: 'deletedAt', type: 'Date' };

const MAX_DEFAULT = 7;
export const MIN_WIDTH = 60;
const MAX_WIDTH = 900;

const WIDTHS: Record<string, number> = { Number: 100, Boolean: 90, Date: 176, Ref: 160, Array: 180, Object: 200 };

/** What a column can show: the declared fields, those that documents have besides, and the moments of the service. */
export function columnFields(collection: Collection, found: readonly string[]): CollectionField[] {
  const declared = new Set(collection.fields.map(({ name }) => name));
  const others = found.filter((name) => !declared.has(name)).map((name) => ({ name, type: 'any' as const }));
  return [...collection.fields, ...others, ...SYSTEM];
}

const widthOf = ({ type, enum: choices }: FieldShape): number => (choices ? 110 : (WIDTHS[type] ?? 200));

/** The default columns of a collection. */
export function defaultColumns(fields: readonly CollectionField[]): GridColumn[] {
  const own = fields.filter(({ name }) => !SYSTEM.some((each) => each.name === name));
  // What a document is known by stands first as a rule: it has room.
  const widthAt = (field: CollectionField, at: number): number => (at === 0 && field.type === 'String' ? 260 : 0);
  return [...own.slice(0, MAX_DEFAULT), SYSTEM[0]!].map((field, at) => ({
    name: field.name,
    width: Math.max(widthOf(field), widthAt(field, at)),
  }));
}

const settingOf = (base: string): string => `columns ${base}`;

/** The columns as this browser keeps them for a collection; those of fields that are gone are left out. */
export function readColumns(base: string, fields: readonly CollectionField[]): GridColumn[] {
  const kept = readSetting<GridColumn[]>(settingOf(base));
  if (!Array.isArray(kept)) return defaultColumns(fields);
  const known = new Set(fields.map(({ name }) => name));
  const columns = kept.filter(({ name }) => known.has(name));
  return columns.length === 0
    ? defaultColumns(fields)
    : columns.map(({ name, width }) => ({ name, width: clamp(width) }));
}

export const keepColumns = (base: string, columns: readonly GridColumn[]): void =>
  keepSetting(settingOf(base), columns);
export const forgetColumns = (base: string): void => forgetSetting(settingOf(base));

const clamp = (width: number): number => Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, Math.round(width) || 200));

export function resized(columns: readonly GridColumn[], name: string, width: number): GridColumn[] {
  return columns.map((column) => (column.name === name ? { name, width: clamp(width) } : column));
}

/** With the column shown at another place among the others. */
export function moved(columns: readonly GridColumn[], name: string, to: number): GridColumn[] {
  const column = columns.find((each) => each.name === name);
  if (!column) return [...columns];
  const others = columns.filter((each) => each !== column);
  return others.toSpliced(Math.max(0, to), 0, column);
}

export function toggled(
  columns: readonly GridColumn[],
  name: string,
  fields: readonly CollectionField[],
): GridColumn[] {
  if (columns.some((column) => column.name === name)) {
    return columns.length === 1 ? [...columns] : columns.filter((column) => column.name !== name);
  }
  const field = fields.find((each) => each.name === name);
  return field ? [...columns, { name, width: widthOf(field) }] : [...columns];
}
