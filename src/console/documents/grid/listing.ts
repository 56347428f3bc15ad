import type { Collection } from '../../collection.js';
import type { GridColumn } from './grid-columns.js';

/** Parts of the address of a list that are not filters. */
const OWN = new Set(['cursor', 'sort', 'trash', 'open', 'from', 'tab', 'import', 'limit', 'as']);
export const PAGE_SIZES = [25, 50, 100, 200] as const;
const DEFAULT_SIZE = 50;
const ONLY_TRASH = ['include_deleted', 'only'];

/** A list as its address says. */
export interface Listing {
  /** Parameters of the API with their values. */
  filters: readonly (readonly [string, string])[];
  sort: string;
  size: number;
  isTrash: boolean;
  /** Where the page begins; null at the first one. */
  cursor: string | null;
  /** The user as whom the list is read; null = as it is. */
  as: string | null;
}

export function readListing(query: URLSearchParams): Listing {
  const size = Number(query.get('limit'));
  return {
    filters: [...query].filter(([name]) => !OWN.has(name)),
    sort: query.get('sort') ?? '',
    size: PAGE_SIZES.find((each) => each === size) ?? DEFAULT_SIZE,
    // What a user sees is asked of lists alone, which show no trash.
    isTrash: query.get('trash') === '1' && query.get('as') === null,
    as: query.get('as'),
    cursor: query.get('cursor'),
  };
}

/** The query of a page of documents in the operators' API. */
export function pageQuery(
  { filters, sort, size, cursor, isTrash, as }: Listing,
  columns: readonly GridColumn[],
): URLSearchParams {
  const kept = ['createdAt', 'updatedAt', 'isDeleted', 'deletedAt'];
  const shown = [...new Set([...columns.map(({ name }) => name), ...kept])];
  return new URLSearchParams([
    ...filters.map(([name, value]) => [name, value]),
    ['limit', String(size)],
    ['cursor', cursor ?? 'start'],
    ['fields', shown.join(',')],
    ...(sort === '' ? [] : [['sort', sort]]),
    ...(as === null ? [] : [['as', as]]),
    ...(isTrash ? [ONLY_TRASH] : []),
  ]);
}

/** What an export takes of a list. */
export const filterQuery = ({ filters, isTrash }: Listing): URLSearchParams =>
  new URLSearchParams([...filters.map(([name, value]) => [name, value]), ...(isTrash ? [ONLY_TRASH] : [])]);

/** The field that a list is sorted by, and which way; without a word the newest come first. */
export function sortOf(sort: string): { name: string; isDown: boolean } {
  const [first = ''] = sort.split(',');
  return first === ''
    ? { name: 'createdAt', isDown: true }
    : { name: first.replace(/^-/, ''), isDown: first[0] === '-' };
}

/** What a click on a column's name sorts by: upwards, downwards, and then as without a word. */
export function nextSort(sort: string, name: string): string | null {
  const { name: now, isDown } = sortOf(sort);
  if (name === 'createdAt') return now === name && isDown ? name : null;
  if (now !== name) return name;
  return isDown ? null : `-${name}`;
}

/** True if an index of the collection has the field first. */
export function isIndexed({ indexes, fields }: Collection, name: string): boolean {
  return (
    ['_id', 'createdAt'].includes(name) ||
    indexes.some((index) => index.replace(/^-/, '').split(',')[0]?.trim() === name) ||
    fields.some((field) => field.name === name && field.unique === true)
  );
}
