import type { Document } from 'bson';
import type { App } from '../../../app.js';
import type { AskedPage, FoundPage } from '../../../platform/database/database.js';
import {
  findVisibility,
  peekFilter,
  readAccess,
  seesAll,
  type AccessFilter,
  type ReadAccess,
} from '../../access/access-rules.js';
import { type Caller, tenantOfCaller } from '../../access/caller.js';
import type { FieldVisibility } from '../../access/rules/field-visibility.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { peekCollection, requireCollection } from '../../collections/collection-store.js';
import { openCursor, signCursor } from '../query/cursor.js';
import { documentStore } from '../store/document-store.js';
import { visibleDocuments } from '../store/document.js';
import { allOf, keysetFilters } from '../query/keyset-filter.js';
import { MAX_REMEMBERED_CHARACTERS, parseListQuery, type ListQuery } from '../query/parse-list-query.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { redactRow, requireReadableNames } from '../reply/redact-fields.js';
import { decodeStored, writeDocuments } from '../reply/encode-document.js';
import { listError } from '../reply/query-errors.js';
import { readRows, readWithin, ReplySize, SMALL_REPLY_BYTES } from '../reply/reply-size.js';
import { projectionOf, widest } from '../reply/select-fields.js';
import { sortKeyOf } from '../query/sort-key.js';
import { timeRead } from './time-read.js';
import { wrapReply, type EncodedReply } from '../reply/encoded-reply.js';
import { encodeStored, listEnvelope, presentStored, turnToEncode, type StoredDocuments } from './stored-documents.js';

interface OffsetFigures {
  total: number;
  page: number;
  nextCursor: null;
  limit: number;
}

interface CursorFigures {
  /** The count at the beginning of the walk, or a new one with `count=true`. */
  total: number;
  cursor: string;
  nextCursor: string | null;
  limit: number;
}

type Figures = OffsetFigures | CursorFigures;
export type ListReply = ({ items: PresentedDocument[] } & Figures) | { count: number };

/** Patterns cost much per document, and cannot use an index. */
const PATTERN_TIME_MS = 3_000;
/** The skip from which the documents are counted first: a page beyond the end then costs no more than the count. */
const DEEP_SKIP = 10_000;

/** A list as JSON; otherwise like listDocuments. */
export interface EncodedList {
  json: EncodedReply;
  /** The number of the documents was asked for instead of a page of them. */
  counted: boolean;
}

/** Lists that took longer than a turn, or were large. */
const slow = new WeakSet<ListQuery>();

/**
 * encodeList, in the envelope, for what is asked for most: a page of whole documents, of which nothing has to be found
 * out first, that is read within a turn of the event loop. Undefined for everything else.
 */
export function encodeListNow(
  app: App,
  caller: Caller,
  collectionName: string,
  rawQuery: string,
): EncodedReply | Promise<EncodedReply> | undefined {
  const collection = peekCollection(app, caller.project._id, collectionName);
  if (!collection || rawQuery.length > MAX_REMEMBERED_CHARACTERS || !seesAll(collection, caller)) return undefined;
  const readable = peekFilter(collection, caller, () => parseListQuery(rawQuery, collection).conditions);
  if (readable === undefined) return undefined;
  const query = parseListQuery(rawQuery, collection);
  const { paging, limit, order: sort, meta } = query;
  if (slow.has(query) || paging.mode === 'cursor' || paging.skip >= DEEP_SKIP) return undefined;
  if (query.count || query.fields || query.populate.length > 0 || query.includeDeleted) return undefined;
  const { page, skip } = paging;
  const asked = { filter: filterOfList(readable, query), sort, skip, limit, mostBytes: SMALL_REPLY_BYTES };
  const found = readPage(app, collection, asked);
  if (!found) {
    slow.add(query);
    return undefined;
  }
  const { rows, total } = found;
  const items: EncodedReply = { write: (out) => (writeDocuments(out, rows, meta), '') };
  const reply = listEnvelope({ json: wrapList(items, { total, page, nextCursor: null, limit }), counted: false });
  const pause = turnToEncode(
    caller,
    rows.reduce((bytes, { length }) => bytes + length, 0),
  );
  return pause ? pause.then(() => reply) : reply;
}

function readPage(app: App, collection: Collection, asked: AskedPage): FoundPage | undefined {
  try {
    return app.db.findPage(documentsName(collection), asked);
  } catch (error) {
    throw listError(error);
  }
}

function wrapList(items: EncodedReply, figures: Figures): EncodedReply {
  return wrapReply('{"items":', items, `,${JSON.stringify(figures).slice(1)}`);
}

/**
 * listDocuments for sending: documents go from the store to the reply without being decoded. 503 BUSY when too many
 * large replies are under way. Reading ends when `signal` aborts.
 */
export async function encodeList(
  app: App,
  caller: Caller,
  collectionName: string,
  rawQuery: string,
  signal: AbortSignal,
): Promise<EncodedList> {
  return readWithin(
    app.replies,
    tenantOfCaller(caller),
    async (size) => {
      const { query, found } = await readList(app, caller, collectionName, rawQuery, { size, signal });
      if ('count' in found) return { json: JSON.stringify(found), counted: true };
      const items = await encodeStored(app, caller, found.items, query);
      return { json: wrapList(items, found.figures), counted: false };
    },
    signal,
  );
}

/**
 * A page of a collection's documents, or their number (rest-api.md 4.2, decisions.md 4). 404 for an unknown collection,
 * 401 without a user on a private one, 400 for a bad query or a page that is too large. Holds one page at most; what
 * the caller may not see is filtered by the database. Reading ends when `signal` aborts, if one is given.
 */
export async function listDocuments(
  app: App,
  caller: Caller,
  collectionName: string,
  rawQuery: string,
  signal?: AbortSignal,
): Promise<ListReply> {
  const { query, found } = await readList(app, caller, collectionName, rawQuery, { signal });
  if ('count' in found) return found;
  return { items: await presentStored(app, caller, found.items, query), ...found.figures };
}

async function readList(
  app: App,
  caller: Caller,
  collectionName: string,
  rawQuery: string,
  { size = new ReplySize(), signal }: { size?: ReplySize; signal?: AbortSignal } = {},
): Promise<{ query: ListQuery; found: Found }> {
  const reading = await openReading(app, caller, collectionName, rawQuery, size, signal);
  try {
    return { query: reading.query, found: await read(reading) };
  } catch (error) {
    throw listError(error, signal);
  }
}

async function openReading(
  app: App,
  caller: Caller,
  collectionName: string,
  rawQuery: string,
  size: ReplySize,
  signal: AbortSignal | undefined,
): Promise<Reading> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  let parsed: ListQuery | null = null;
  const parse = (): ListQuery => (parsed ??= parseListQuery(rawQuery, collection));
  const active = await readAccess(app, collection, caller, { conditions: () => parse().conditions });
  const query = parse();
  const visibility = await findVisibility(app, collection, caller);
  const scope = { trash: true, conditions: () => query.conditions };
  const access = query.includeDeleted ? await readAccess(app, collection, caller, scope) : active;
  requireReadableNames(visibility, query);
  const filter = filterOfList(access.filter, query);
  const timeMs = timeFor(query, app.config.queryTimeoutMs);
  return { app, collection, query, shape: access.shape, visibility, filter, timeMs, size, signal };
}

function filterOfList(readable: AccessFilter, { includeDeleted, conditions }: ListQuery): Document {
  return allOf([...(readable ? [readable] : []), visibleDocuments(includeDeleted), ...conditions]);
}

/** How listDocuments reads the page that the query asks for; it throws the same errors. Ends when `signal` aborts. */
export async function explainList(
  app: App,
  caller: Caller,
  collectionName: string,
  rawQuery: string,
  signal: AbortSignal,
): Promise<ExplainedList> {
  const reading = await openReading(app, caller, collectionName, rawQuery, new ReplySize(), signal);
  const { query, filter } = reading;
  const skip = query.paging.mode === 'cursor' ? 0 : query.paging.skip;
  let told: Document;
  try {
    told = await openFind(reading, filter, query.limit, skip, false).explain();
  } catch (error) {
    throw listError(error, signal);
  }
  return readExplained(told);
}

interface Reading {
  app: App;
  collection: Collection;
  query: ListQuery;
  /** What the caller may read, as cursors are bound to it; `filter` has the values. */
  shape: ReadAccess['shape'];
  /** Null where the caller sees all of the documents. */
  visibility: FieldVisibility | null;
  filter: Document;
  timeMs: number;
  /** Grows with every document that is read. */
  size: ReplySize;
  /** Aborted when the client disconnects. */
  signal: AbortSignal | undefined;
}

type Found = { items: StoredDocuments; figures: Figures } | { count: number };

function read(reading: Reading): Promise<Found> {
  const { paging, count } = reading.query;
  if (paging.mode === 'cursor') return readFromCursor(reading, paging.cursor);
  return count ? readCount(reading) : readFromOffset(reading, paging);
}

async function readCount(reading: Reading): Promise<Found> {
  return { count: await countAll(reading) };
}

async function readFromOffset(reading: Reading, { page, skip }: { page: number; skip: number }): Promise<Found> {
  const { limit, fields } = reading.query;
  const readRows = (): Promise<Buffer[]> =>
    find(reading, reading.filter, shownPaths(reading.query, fields), limit, skip);
  const pageOf = (rows: Buffer[], total: number): Found => {
    return {
      items: { collection: reading.collection, rows, selected: null, size: reading.size },
      figures: { total, page, nextCursor: null, limit },
    };
  };
  if (skip < DEEP_SKIP) {
    const rows = await readRows();
    // A page that is not full is the last one, and gives the total without counting.
    const isLast = rows.length < limit && (rows.length > 0 || skip === 0);
    return pageOf(rows, isLast ? skip + rows.length : await countAll(reading));
  }
  const total = await countAll(reading);
  return pageOf(skip < total ? await readRows() : [], total);
}

async function readFromCursor(reading: Reading, cursor: string | null): Promise<Found> {
  const { app, collection, query, shape, filter } = reading;
  const { sort, limit, fields, conditions, includeDeleted } = query;
  const scope = { collection, sort, conditions, includeDeleted, readable: shape };
  const state = cursor === null ? null : openCursor(app.secrets, scope, cursor);
  const steps = state === null ? [{}] : keysetFilters(sort, state.position);
  const shown = shownPaths(query, fields);
  // The position is made of the sorted fields, shown or not.
  const paths = shown && [...shown, ...sort.map(({ path }) => path)];
  const found: Buffer[] = [];
  for (const step of steps) {
    if (found.length > limit) break;
    found.push(...(await find(reading, allOf([filter, step]), paths, limit + 1 - found.length, 0)));
  }
  const rows = found.slice(0, limit);
  const last = found.length > limit ? decodeStored(rows.at(-1)!) : null;
  const position = last && sort.map((field) => sortKeyOf(last, field));
  const isWhole = state === null && last === null;
  const known = isWhole ? rows.length : query.count ? null : (state?.total ?? null);
  const total = known ?? (await countAll(reading));
  return {
    items: { collection: reading.collection, rows, selected: shown, size: reading.size },
    figures: {
      total,
      cursor: cursor ?? 'start',
      nextCursor: position && signCursor(app.secrets, scope, { position, total }),
      limit,
    },
  };
}

/** The paths to show, with those to be populated; null = everything. */
function shownPaths(query: ListQuery, fields: readonly string[] | null): string[] | null {
  return fields && widest([...fields, ...query.populate.map(({ path }) => path)]);
}

function find(
  reading: Reading,
  filter: Document,
  paths: string[] | null,
  limit: number,
  skip: number,
): Promise<Buffer[]> {
  const { app, collection, query, size } = reading;
  // Only fields without rules can be selected.
  const visibility = paths ? null : reading.visibility;
  const asked = { command: 'find', filter, sort: query.order } as const;
  return timeRead(
    app,
    collection,
    asked,
    () => {
      const cursor = openFind(reading, filter, limit, skip);
      return readRows(paths ? cursor.project(projectionOf(paths)) : cursor, size, (row) => redactRow(row, visibility));
    },
    // Without a condition what was read is what is answered.
    (rows) => rows.length < limit && query.conditions.length > 0,
  );
}

function openFind(
  { app, collection, query, timeMs, size, signal }: Reading,
  filter: Document,
  limit: number,
  skip: number,
  raw = true,
) {
  return (
    documentStore(app, collection)
      .find(filter, { raw, signal, batchBytes: size.batchBytes })
      .sort(query.order)
      .skip(skip)
      .limit(limit)
      // All of them, of one moment, unless they are larger than there is room for.
      .batchSize(limit + 1)
      .maxTimeMS(timeMs)
  );
}

function countAll({ app, collection, filter, timeMs, signal }: Reading): Promise<number> {
  const asked = { command: 'count', filter, sort: {} } as const;
  const count = (): Promise<number> =>
    documentStore(app, collection).countDocuments(filter, { maxTimeMS: timeMs, signal });
  return timeRead(app, collection, asked, count, () => true);
}

function timeFor({ conditions }: ListQuery, mostMs: number): number {
  const usesPattern = conditions.some((condition) => Object.values(condition).some((part) => '$regex' in Object(part)));
  return usesPattern ? Math.min(mostMs, PATTERN_TIME_MS) : mostMs;
}

/** How a list or a pipeline would be read, in the database's own form, and what was looked at for it. */
export interface ExplainedList {
  /** The indexes that it uses; none: every document is read. */
  indexes: string[];
  /** Documents that were looked at, and those that were found or handed to the stages of a pipeline. */
  examined: number;
  returned: number;
  plan: unknown;
}

interface Told {
  queryPlanner: { winningPlan: unknown };
  executionStats: { totalDocsExamined: number; nReturned: number };
}

/** What the database's explain says, the same for a list and for the first stages of a pipeline. */
export function readExplained(told: Document): ExplainedList {
  const { stages } = told as { stages?: { $cursor?: Told }[] };
  const { queryPlanner, executionStats } = stages?.[0]?.$cursor ?? (told as Told);
  return {
    indexes: [...new Set(namesOfIndexes(queryPlanner.winningPlan))],
    examined: executionStats.totalDocsExamined,
    returned: executionStats.nReturned,
    plan: queryPlanner.winningPlan,
  };
}

function namesOfIndexes(plan: unknown): string[] {
  if (typeof plan !== 'object' || plan === null) return [];
  const { indexName } = plan as { indexName?: unknown };
  const below = Object.values(plan).flatMap(namesOfIndexes);
  return typeof indexName === 'string' ? [indexName, ...below] : below;
}
