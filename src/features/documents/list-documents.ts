import type { Document } from 'bson';
import type { App } from '../../app.js';
import { readFilter } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import type { Collection } from '../collections/collection.js';
import { requireCollection } from '../collections/collection-store.js';
import { openCursor, sealCursor } from './cursor.js';
import { visibleDocuments, type StoredDocument } from './document.js';
import { documentStore } from './document-store.js';
import { keysetFilters } from './keyset-filter.js';
import { parseListQuery, type ListQuery } from './parse-list-query.js';
import { populateDocuments } from './populate-documents.js';
import { presentDocument, type PresentedDocument } from './present-document.js';
import { listError } from './query-errors.js';
import { projectionOf, selectFields, widest } from './select-fields.js';
import { sortKeyOf } from './sort-key.js';

export interface OffsetPage {
  items: PresentedDocument[];
  total: number;
  page: number;
  nextCursor: null;
  limit: number;
}

export interface CursorPage {
  items: PresentedDocument[];
  /** Only on request, because counting costs more than a page. */
  total: number | null;
  cursor: string;
  nextCursor: string | null;
  limit: number;
}

export type ListReply = OffsetPage | CursorPage | { count: number };

/** Patterns cost much per document, and cannot use an index. */
const PATTERN_TIME_MS = 3_000;
/** From here on the documents are counted first: a page beyond the end then costs no more than the count. */
const DEEP_SKIP = 10_000;

/**
 * A page of a collection's documents, or their number (rest-api.md 4.2, decisions.md 4). 404 for an unknown collection, 401 without a user on a
 * private one, 400 for a bad query. Holds one page at most; what the caller may not see is filtered by the database.
 */
export async function listDocuments(
  app: App,
  caller: Caller,
  collectionName: string,
  rawQuery: string,
): Promise<ListReply> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  const readable = readFilter(collection, caller);
  const query = parseListQuery(rawQuery, collection);
  const reading: Reading = {
    app,
    collection,
    query,
    filter: allOf([...(readable ? [readable] : []), visibleDocuments(query.includeDeleted), ...query.conditions]),
    timeMs: timeFor(query, app.config.queryTimeoutMs),
  };
  try {
    const { items, ...reply } = await read(reading);
    if (!items) return reply as { count: number };
    const presented = items.map((document) => presentDocument(document, query.meta));
    await populateDocuments(app, caller, presented, query);
    return { items: presented, ...reply } as ListReply;
  } catch (error) {
    throw listError(error);
  }
}

interface Reading {
  app: App;
  collection: Collection;
  query: ListQuery;
  filter: Document;
  timeMs: number;
}

type Found = Record<string, unknown>;

function read(reading: Reading): Promise<{ items?: Found[]; limit?: number }> {
  const { paging, count } = reading.query;
  if (paging.mode === 'cursor') return readFromCursor(reading, paging.cursor);
  return count ? readCount(reading) : readFromOffset(reading, paging);
}

async function readCount(reading: Reading): Promise<{ items?: undefined; count: number }> {
  return { count: await countAll(reading) };
}

async function readFromOffset(reading: Reading, { page, skip }: { page: number; skip: number }) {
  const { limit, fields } = reading.query;
  const readItems = (): Promise<Found[]> =>
    find(reading, reading.filter, shownPaths(reading.query, fields), limit, skip);
  if (skip < DEEP_SKIP) {
    const items = await readItems();
    // A page that is not full is the last one, and tells the total without counting.
    const isLast = items.length < limit && (items.length > 0 || skip === 0);
    return { items, total: isLast ? skip + items.length : await countAll(reading), page, nextCursor: null, limit };
  }
  const total = await countAll(reading);
  return { items: skip < total ? await readItems() : [], total, page, nextCursor: null, limit };
}

async function readFromCursor(reading: Reading, cursor: string | null) {
  const { app, collection, query, filter } = reading;
  const { sort, limit, fields } = query;
  const scope = { collection, sort, conditions: query.conditions, includeDeleted: query.includeDeleted };
  const steps = cursor === null ? [{}] : keysetFilters(sort, openCursor(app.secrets, scope, cursor));
  const shown = shownPaths(query, fields);
  // The position is made of the sorted fields, shown or not.
  const paths = shown && [...shown, ...sort.map(({ path }) => path)];
  const found: Found[] = [];
  for (const step of steps) {
    if (found.length > limit) break;
    found.push(...(await find(reading, allOf([filter, step]), paths, limit + 1 - found.length, 0)));
  }
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const position = found.length > limit && last ? sort.map((field) => sortKeyOf(last, field)) : null;
  return {
    items: shown ? items.map((document) => selectFields(document, shown)) : items,
    total: query.count ? await countAll(reading) : null,
    cursor: cursor ?? 'start',
    nextCursor: position && sealCursor(app.secrets, scope, position),
    limit,
  };
}

/** The paths to show, with those to be populated; null = everything. */
function shownPaths(query: ListQuery, fields: string[] | null): string[] | null {
  return fields && widest([...fields, ...query.populate.map(({ path }) => path)]);
}

async function find(
  { app, collection, query, timeMs }: Reading,
  filter: Document,
  paths: string[] | null,
  limit: number,
  skip: number,
): Promise<Found[]> {
  const cursor = documentStore(app, collection)
    .find(filter)
    .sort(Object.fromEntries(query.sort.map(({ path, direction }) => [path, direction])))
    .skip(skip)
    .limit(limit)
    .maxTimeMS(timeMs);
  const documents: StoredDocument[] = await (
    paths ? cursor.project<StoredDocument>(projectionOf(paths)) : cursor
  ).toArray();
  return documents;
}

function countAll({ app, collection, filter, timeMs }: Reading): Promise<number> {
  return documentStore(app, collection).countDocuments(filter, { maxTimeMS: timeMs });
}

function timeFor({ conditions }: ListQuery, mostMs: number): number {
  const usesPattern = conditions.some((condition) => Object.values(condition).some((part) => '$regex' in Object(part)));
  return usesPattern ? Math.min(mostMs, PATTERN_TIME_MS) : mostMs;
}

function allOf(conditions: Document[]): Document {
  return conditions.length === 1 ? conditions[0]! : { $and: conditions };
}
