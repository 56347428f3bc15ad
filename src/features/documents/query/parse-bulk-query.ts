import type { Document } from 'bson';
import { invalid } from '../../../errors.js';
import type { Collection } from '../../collections/collection.js';
import { badQuery, quoted, readFlag, readQueryText, readWholeNumber } from '../reply/query-text.js';
import { readConditions, readTrash, RESERVED_KEYS } from './parse-list-query.js';

/** Which documents a request changes by a filter. */
export interface BulkQuery {
  conditions: readonly Document[];
  /** The number of documents that the caller means; null = the caller wants to know it. */
  confirm: number | null;
  /** Removed permanently; only then the trash can be meant. */
  permanent: boolean;
  includeDeleted: boolean;
}

/**
 * Reads the query of a change of many documents (writes.md 4): filters, `confirm`, and for removals `permanent` and
 * with it `include_deleted`. 400 INVALID_QUERY, FILTER_REQUIRED without a filter. A field named as one of these is
 * filtered by as `filter[confirm]`.
 */
export function parseBulkQuery(raw: string, collection: Collection, isRemoval: boolean): BulkQuery {
  const query = readQueryText(raw);
  const own = isRemoval ? ['confirm', 'permanent', 'include_deleted'] : ['confirm'];
  for (const name of query.keys()) {
    if (!RESERVED_KEYS.has(name) || own.includes(name)) continue;
    throw badQuery(`${quoted(name)} is not a parameter here: filters are, and ${own.join(', ')}`);
  }
  const confirm = readWholeNumber(query, 'confirm', 0);
  const permanent = isRemoval && readFlag(query, 'permanent', false);
  const trash = readTrash(query);
  if (trash.includeDeleted && !permanent) {
    throw badQuery('include_deleted is for documents that are removed for good: add permanent=true');
  }
  const filters = new Map([...query].filter(([name]) => !own.includes(name)));
  const conditions = [...readConditions(filters, collection), ...trash.conditions];
  if (filters.size === 0 && trash.conditions.length === 0) {
    throw invalid('FILTER_REQUIRED', 'Say by a filter which documents are meant, such as status=old');
  }
  return { conditions, confirm, permanent, includeDeleted: trash.includeDeleted };
}
