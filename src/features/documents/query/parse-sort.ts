import type { Collection } from '../../collections/collection.js';
import { comparedPath } from '../../collections/fields/nocase.js';
import { findField, isFieldPath } from '../store/find-field.js';
import { badQuery, quoted } from '../reply/query-text.js';
import { findNearest } from '../../../platform/nearest.js';

export interface SortField {
  /** As stored: of a `@nocase` field that of its folded value. */
  path: string;
  direction: 1 | -1;
}

export const DEFAULT_SORT = '-createdAt';
const MAX_SORT_FIELDS = 8;
const SORT_PART = /^(?<minus>-)?(?<path>[^:]+?)(:(?<word>asc|desc))?$/;

/**
 * Reads `f`, `-f`, `f:asc`, `f:desc` and comma lists of them. The result always ends with `_id`, in the direction of
 * the last field named, so that one index with a trailing `_id` serves the sort forwards and backwards.
 */
export function parseSort(text: string | null, collection: Collection): SortField[] {
  const sort: SortField[] = [];
  for (const part of (text ?? DEFAULT_SORT).split(',', MAX_SORT_FIELDS + 1)) {
    if (sort.length === MAX_SORT_FIELDS) throw badQuery(`sort may name at most ${MAX_SORT_FIELDS} fields`);
    const { minus, path: named, word } = SORT_PART.exec(part.trim())?.groups ?? {};
    if (!named || (minus && word)) {
      throw badQuery(`sort: ${quoted(part)} is not field, -field, field:asc or field:desc`);
    }
    requireSortField(collection, named);
    const path = comparedPath(collection, named);
    if (sort.some((field) => field.path === path)) throw badQuery(`sort names ${quoted(named)} twice`);
    sort.push({ path, direction: minus || word === 'desc' ? -1 : 1 });
    if (path === '_id') return sort;
  }
  return [...sort, { path: '_id', direction: sort.at(-1)!.direction }];
}

function requireSortField(collection: Collection, path: string): void {
  if (!isFieldPath(path)) throw badQuery(`sort: ${quoted(path)} is not a field`);
  if (path === 'isDeleted' || path === 'deletedAt') throw badQuery(`sort: ${path} cannot be sorted by`);
  if (!findField(collection, path)) {
    throw badQuery(`Unknown field ${quoted(path)} in sort${adviseNearest(collection, path)}`);
  }
}

/** Suggests an existing field for an unknown one. Hidden fields are never suggested. */
export function adviseNearest({ fields }: Collection, path: string): string {
  const shown = fields.filter(({ hidden }) => !hidden);
  const near = findNearest(
    path,
    shown.map(({ name }) => name),
  );
  return near === null ? '' : `: did you mean ${quoted(near)}?`;
}
