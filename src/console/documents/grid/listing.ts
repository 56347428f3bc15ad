import { useEffect, useState } from 'preact/hooks';
import { withQuery, below } from '../../api-paths.js';
import { type Refusal, call } from '../../api.js';
import {
  type Collection,
  type DocumentsPath,
  documentsIn,
  USERS,
  type CollectionField,
  type CollectionsPath,
} from '../../collection.js';
import { useLoad } from '../../load.js';
import { titleField } from '../../parts/schema-form/form-place.js';
import type { ShownFields } from '../record/use-record.js';
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

export interface Page {
  rows: readonly ShownFields[] | null;
  /** How many match in all, where that is known. */
  total: number | null;
  /** Where the next page begins; null at the end. */
  next: string | null;
  error: Refusal | null;
  loading: boolean;
  ms: number;
  reload: () => void;
}

/** A page of documents: of active ones, or of the trash alone. */
export function usePage(documents: DocumentsPath, listing: Listing, columns: readonly GridColumn[] | null): Page {
  const { data, ...rest } = useLoad(columns && withQuery(documents, pageQuery(listing, columns)));
  // Their exact count was not requested.
  const page = data && 'items' in data ? data : null;
  return { rows: page?.items ?? null, total: page?.total ?? null, next: page?.nextCursor ?? null, ...rest };
}

/** Beyond them the address would be too long. */
const MAX_AT_ONCE = 100;

/** Titles of the documents that the shown rows name, by id: one request for each collection that is named. */
export function useRefTitles(
  base: CollectionsPath,
  rows: readonly ShownFields[] | null,
  fields: readonly CollectionField[],
  collections: readonly Collection[],
): ReadonlyMap<string, string> {
  const [titles, setTitles] = useState<ReadonlyMap<string, string>>(new Map());
  useEffect(() => {
    if (!rows) return undefined;
    const ending = new AbortController();
    for (const [name, ids] of idsByCollection(rows, fields)) {
      const target = collections.find((each) => each.name === name && name !== USERS);
      const title = titleField(target);
      const wanted = [...ids].filter((id) => !titles.has(id)).slice(0, MAX_AT_ONCE);
      if (title === null || wanted.length === 0) continue;
      call('GET', below(base, '/{collection}/documents', { collection: name }), {
        query: { _id_in: wanted.join(','), fields: title, limit: MAX_AT_ONCE },
        signal: ending.signal,
      }).then(
        (list) => {
          const found = documentsIn(list).flatMap(({ _id, [title]: text }) =>
            typeof text === 'string' && text !== '' ? [[_id, text] as const] : [],
          );
          setTitles((old) => new Map([...old, ...found]));
        },
        // The ids stay.
        () => undefined,
      );
    }
    return () => ending.abort();
  }, [rows, base, collections]);
  return titles;
}

function idsByCollection(rows: readonly ShownFields[], fields: readonly CollectionField[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { name, ref, items } of fields) {
    const to = ref ?? items?.ref;
    if (to === undefined) continue;
    const ids = found.get(to) ?? new Set<string>();
    for (const row of rows) for (const id of [row[name]].flat()) if (typeof id === 'string') ids.add(id);
    found.set(to, ids);
  }
  return found;
}
