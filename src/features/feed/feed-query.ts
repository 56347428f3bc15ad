import { createHash } from 'node:crypto';
import type { Document } from 'bson';
import type { FieldVisibility } from '../access/rules/field-visibility.js';
import type { Collection } from '../collections/collection.js';
import { parseListQuery, type ListQuery } from '../documents/query/parse-list-query.js';
import { badQuery, findSingle, readQueryText, readWholeNumber, type QueryText } from '../documents/reply/query-text.js';
import type { FoundChange } from '../changes/change-log.js';
import { decodeStored, encodeStoredJson } from '../documents/reply/encode-document.js';
import { redactRow } from '../documents/reply/redact-fields.js';
import { presentDocument } from '../documents/reply/present-document.js';
import { selectFields } from '../documents/reply/select-fields.js';

/** A request for changes, checked. */
export interface FeedQuery {
  /** A cursor, `now`, or null for everything from the beginning. */
  since: string | null;
  limit: number;
  waitMs: number;
  fields: readonly string[] | null;
  meta: boolean;
  conditions: readonly Document[];
  /** Fields of the documents that the caller does not see; absent where it sees all of them. */
  visibility?: FieldVisibility;
  /** The filter as the client wrote it, in an order of its own: what a cursor is bound to. */
  filterText: string;
  /** The first so many documents alone; null: all of them. */
  window: WindowQuery | null;
  /** Ref fields that are replaced by the documents that they name. */
  populate: ListQuery['populate'];
}

/** A change whose document may be encoded already, as `encodeChange` would. */
export interface PopulatedChange extends FoundChange {
  json?: string;
}

/** The first documents of a list, as many as its limit. */
export type WindowQuery = Pick<ListQuery, 'sort' | 'order' | 'limit'>;

export const DEFAULT_CHANGES = 200;
export const MAX_CHANGES = 1000;
export const MAX_WAIT_S = 25;

/** Parameters of a list that mean nothing for changes. */
const REFUSED = ['page', 'skip', 'cursor', 'count', 'expand', 'include_deleted'];
/** Each is followed too. */
const MAX_POPULATED_PATHS = 2;
/** Parameters that no list has. */
export const FEED_PARAMETERS: ReadonlySet<string> = new Set(['since', 'wait']);
const NO_FILTER: ReadonlySet<string> = new Set(['since', 'wait', 'limit', 'sort', 'fields', 'meta']);

/** Reads the query string of a request for changes: the filters of lists; 400 INVALID_QUERY names the parameter. */
export function readFeedQuery(raw: string, collection: Collection): FeedQuery {
  const query = readQueryText(raw);
  for (const name of REFUSED) {
    if (query.has(name)) throw badQuery(`${name} is not a parameter of changes: use since, limit, wait, fields, meta`);
  }
  const waitS = readWholeNumber(query, 'wait', 0, MAX_WAIT_S) ?? 0;
  const limit = readWholeNumber(query, 'limit', 1, MAX_CHANGES) ?? DEFAULT_CHANGES;
  const listed = parseListQuery(inOrder(raw), collection);
  const window = readWindowQuery(query, listed);
  const { populate } = listed;
  if (populate.length > MAX_POPULATED_PATHS) {
    throw badQuery(`populate may name at most ${MAX_POPULATED_PATHS} fields of changes`);
  }
  return {
    since: findSingle(query, 'since') || null,
    limit,
    waitMs: waitS * 1000,
    fields: listed.fields,
    meta: listed.meta,
    conditions: listed.conditions,
    filterText: [...query]
      .filter(([name]) => !NO_FILTER.has(name))
      .map(([name, values]) => `${name}=${[...values].sort().join('&')}`)
      .sort()
      .concat(window ? `limit=${window.limit} ${JSON.stringify(window.sort)}` : [])
      .join('\n'),
    window,
    populate,
  };
}

/** With `sort` the limit is that of a window; without, that of a page. */
function readWindowQuery(query: QueryText, { sort, order, limit }: ListQuery): WindowQuery | null {
  if (!query.has('sort')) return null;
  if (!query.has('limit')) throw badQuery('sort needs limit: the first documents are followed');
  return { sort, order, limit };
}

/**
 * The parameters that lists have too, in an order of their own: a client that writes the same filter in another order
 * has the same conditions, and goes on by its cursor.
 */
function inOrder(raw: string): string {
  const parts = raw.split('&').map((part) => ({ part, key: [...readQueryText(part)].flat(2) }));
  return parts
    .filter(({ key: [name] }) => name !== undefined && !FEED_PARAMETERS.has(name))
    .map(({ part, key }) => ({ part, text: key.join('=') }))
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))
    .map(({ part }) => part)
    .join('&');
}

/** A short text for what a filter and rules come to; another one when either means something else than before. */
export function digest(value: string): string {
  return createHash('sha256').update(value).digest('base64url').slice(0, 12);
}

type Shown = Pick<FeedQuery, 'fields' | 'meta' | 'visibility'>;

/**
 * The members of a change as JSON without its braces; as `latin1` text that stands for UTF-8 (see replyEncodedJson).
 */
export function encodeChange({ id, at, document, json }: PopulatedChange, shown: Shown): string {
  const head = `"type":"${document ? 'upsert' : 'gone'}","id":"${id}","at":"${at.toISOString()}"`;
  return document ? `${head},"document":${json ?? encodeShown(document, shown)}` : head;
}

function encodeShown(row: Buffer, { fields, meta, visibility }: Shown): string {
  if (!fields) return encodeStoredJson(redactRow(row, visibility ?? null), meta);
  const shown = presentDocument(selectFields(decodeStored(row), fields), meta);
  return Buffer.from(JSON.stringify(shown)).latin1Slice();
}
