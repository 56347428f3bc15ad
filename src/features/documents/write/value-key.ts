import { isObjectId } from '../../../platform/ids.js';

/** Equal for values that the database takes as equal: numbers of any kind, objects with the same keys in one order. */
export function valueKey(value: unknown): string {
  if (typeof value !== 'object' || value === null) return `${typeof value} ${String(value)}`;
  if (value instanceof Date) return `date ${value.getTime()}`;
  if (isObjectId(value)) return `id ${value.toHexString()}`;
  if (Array.isArray(value)) return `[${value.map((item) => JSON.stringify(valueKey(item))).join()}]`;
  const entries = Object.entries(value).map(([name, item]) => [name, valueKey(item)]);
  return `{${JSON.stringify(entries)}}`;
}

/** The database's order, also of values of different types. */
export function compareStored(a: unknown, b: unknown): number {
  const [left, right] = [rankOf(a), rankOf(b)];
  if (left !== right) return left - right;
  if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  if (a instanceof Date) return a.getTime() - (b as Date).getTime();
  return typeof a === 'object' ? 0 : Number(a) - Number(b);
}

const RANKS: Readonly<Record<string, number>> = { number: 1, bigint: 1, string: 2, boolean: 7 };

function rankOf(value: unknown): number {
  if (value === null || value === undefined) return 0;
  const rank = RANKS[typeof value];
  if (rank !== undefined) return rank;
  if (Array.isArray(value)) return 4;
  if (isObjectId(value)) return 6;
  return value instanceof Date ? 8 : 3;
}
