import type { Document } from 'bson';
import type { App } from '../../app.js';
import { readFilter } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import { requireChanges } from '../changes/set-changes.js';
import { hintOf, type ChangeLog, type FoundChange } from '../changes/change-log.js';
import { openChangeLog } from '../changes/open-change-log.js';
import { BATCH_NUMBER, mayHide, readSeries } from '../collections/indexes/insert-series.js';
import { requireCollection } from '../collections/collection-store.js';
import type { Collection } from '../collections/collection.js';
import { allOf } from '../documents/query/keyset-filter.js';
import { listError } from '../documents/reply/query-errors.js';
import { decodeStored, encodeStoredJson } from '../documents/reply/encode-document.js';
import { presentDocument } from '../documents/reply/present-document.js';
import { readWithin, type ReplySize } from '../documents/reply/reply-size.js';
import { selectFields } from '../documents/reply/select-fields.js';
import { documentStore } from '../documents/store/document-store.js';
import { findVisible } from '../documents/store/shown-documents.js';
import type { EncodedReply } from '../documents/read/stored-documents.js';
import { relayWaiting } from '../webhooks/outbox/relay-waiting.js';
import { cursorExpired, openFeedCursor, sealFeedCursor, type FeedPosition, type FeedScope } from './feed-cursor.js';
import { readFeedQuery, type FeedQuery } from './feed-query.js';

/** A page holds no more of documents, but for one that alone is larger. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** A hint may get lost: so often it is looked without one. */
const LOOK_MS = 500;

interface Page {
  items: FoundChange[];
  position: FeedPosition;
  more: boolean;
}

interface Following {
  app: App;
  collection: Collection;
  query: FeedQuery;
  scope: FeedScope;
  readable: Document | null;
  log: ChangeLog;
  signal: AbortSignal;
}

/** What a request that may wait has at hand. */
export interface FeedRequest {
  signal: AbortSignal;
  /** Who asks, judged anew: the key may be revoked and the token over while the request waits. */
  settle(): Promise<Caller>;
  /** Waits without counting as a request that is under way; 503 BUSY when too many do. */
  aside(work: () => Promise<void>): Promise<void>;
}

/**
 * A page of a collection's changes as JSON (changes.md 1): what a list with the same key, user and filter shows, first
 * as it is and then as it changes. 400, 401, 403, 404 as for lists, 409 CHANGES_OFF, 410 CURSOR_EXPIRED. Without news
 * it waits as long as the query says; 503 BUSY when too many wait.
 */
export async function readFeed(
  app: App,
  collectionName: string,
  rawQuery: string,
  { signal, settle, aside }: FeedRequest,
): Promise<EncodedReply> {
  let caller = await settle();
  const collection = await requireCollection(app, caller.project._id, collectionName);
  const readable = readFilter(collection, caller);
  requireChanges(app, collection);
  const query = readFeedQuery(rawQuery, collection);
  const userId = readable && collection.rls ? String(readable[collection.rls.ownerField]) : null;
  const { filterText, conditions } = query;
  const scope = { collection, filterText, conditions, userId };
  const following = { app, collection, query, scope, readable, log: openChangeLog(app, collection), signal };
  let position = await findStart(following);
  const waitsUntil = performance.now() + query.waitMs;
  for (;;) {
    const { page, reply } = await readReply(following, caller, position);
    const leftMs = waitsUntil - performance.now();
    const isOver = page.items.length > 0 || page.more || leftMs <= 0;
    if (isOver || signal.aborted || !app.readiness.isReady()) return reply;
    position = page.position;
    await aside(() => app.hints.wait(hintOf(collection._id), Math.min(LOOK_MS, leftMs), signal));
    caller = await settle();
    await requireSameRules(following, caller);
  }
}

async function findStart({ app, scope, query, log }: Following): Promise<FeedPosition> {
  const { since } = query;
  if (since !== null && since !== 'now') return openFeedCursor(app.secrets, scope, since);
  return { ...(await log.begin()), shown: null, isListing: since === null };
}

/** Whoever waits must not be shown by rules that are none any more. */
async function requireSameRules({ app, collection }: Following, caller: Caller): Promise<void> {
  const now = await requireCollection(app, caller.project._id, collection.name);
  if (String(now._id) !== String(collection._id) || now.version !== collection.version) throw cursorExpired();
  readFilter(collection, caller);
}

async function readReply(
  following: Following,
  caller: Caller,
  position: FeedPosition,
): Promise<{ page: Page; reply: EncodedReply }> {
  const { app, query, scope, signal } = following;
  try {
    return await readWithin(
      app.replies,
      caller.project._id,
      async (size) => {
        const page = await readPage(following, position);
        for (const { document } of page.items) size.add(document?.length ?? 0);
        const cursor = sealFeedCursor(app.secrets, scope, page.position);
        return { page, reply: encodePage(page, cursor, query, size) };
      },
      signal,
    );
  } catch (error) {
    throw listError(error, signal);
  }
}

async function readPage(following: Following, from: FeedPosition): Promise<Page> {
  const { app, collection, query, readable } = following;
  // Of a MongoDB: what was written before this moment must be in the log.
  if (!app.db.changeLogs) await relayWaiting(app, collection);
  const hidden = app.db.changeLogs && (await mayHide(app)) ? hiddenBy(await readSeries(app, collection._id)) : null;
  const visible = await findVisible(app, collection);
  const filter = allOf([...(readable ? [readable] : []), visible, ...query.conditions]);
  const items = new Map<string, FoundChange>();
  let position = from;
  let bytes = 0;
  if (from.isListing) {
    const listed = await readListed(following, filter, from);
    for (const item of listed.items) items.set(item.id, item);
    bytes = listed.bytes;
    position = { ...from, shown: listed.last, isListing: !listed.isEnd };
    if (!listed.isEnd) return { items: listed.items, position, more: true };
  }
  const limit = query.limit - items.size;
  if (limit <= 0 || bytes >= MAX_PAGE_BYTES) return { items: [...items.values()], position, more: true };
  const { conditions } = query;
  const maxBytes = MAX_PAGE_BYTES - bytes;
  const found = await following.log.read({ after: position, filter, readable, conditions, hidden, limit, maxBytes });
  if (!found) throw cursorExpired();
  for (const change of found.changes) {
    items.delete(change.id);
    items.set(change.id, change);
  }
  return { items: [...items.values()], position: { ...position, seq: found.seq }, more: !found.isEnd };
}

function hiddenBy({ next, hidden }: { next: number; hidden: readonly number[] }): Document {
  return { $or: [{ [BATCH_NUMBER]: { $gte: next } }, { [BATCH_NUMBER]: { $in: [...hidden] } }] };
}

interface Listed {
  items: FoundChange[];
  bytes: number;
  last: FeedPosition['shown'];
  isEnd: boolean;
}

/** Documents that are there, in the order of their ids, behind the last that was shown. */
async function readListed(
  { app, collection, query, signal }: Following,
  filter: Document,
  from: FeedPosition,
): Promise<Listed> {
  const behind = from.shown === null ? [] : [{ _id: { $gt: from.shown } }];
  const cursor = documentStore(app, collection)
    .find(allOf([filter, ...behind]), { raw: true, signal })
    .sort({ _id: 1 })
    .limit(query.limit)
    .maxTimeMS(app.config.queryTimeoutMs);
  const at = new Date(app.clock.now());
  const listed: Listed = { items: [], bytes: 0, last: from.shown, isEnd: true };
  try {
    while (listed.isEnd && (await cursor.hasNext())) {
      for (const row of cursor.readBufferedDocuments() as unknown as Buffer[]) {
        const { _id, updatedAt } = decodeStored(row);
        listed.bytes += row.length;
        listed.items.push({ id: String(_id), at: updatedAt instanceof Date ? updatedAt : at, document: row });
        listed.last = _id as FeedPosition['shown'];
        if (listed.items.length < query.limit && listed.bytes < MAX_PAGE_BYTES) continue;
        listed.isEnd = false;
        break;
      }
    }
  } finally {
    await cursor.close();
  }
  return listed;
}

function encodePage({ items, more }: Page, cursor: string, query: FeedQuery, size: ReplySize): EncodedReply {
  const closing = `],"cursor":${JSON.stringify(cursor)},"more":${more}},"message":"Changes fetched"}`;
  const parts = encodeItems(items, query);
  const opening = '{"success":true,"data":{"items":[';
  if (!size.isLarge) return opening + [...parts].join('') + closing;
  return { parts: around(opening, parts, closing), release: () => size.release() };
}

function* around(opening: string, parts: Iterable<string>, closing: string): Generator<string> {
  yield opening;
  yield* parts;
  yield closing;
}

function* encodeItems(items: readonly FoundChange[], query: FeedQuery): Generator<string> {
  for (const [index, { id, at, document }] of items.entries()) {
    const head = `${index > 0 ? ',' : ''}{"type":"${document ? 'upsert' : 'gone'}","id":"${id}","at":"${at.toISOString()}"`;
    yield document ? `${head},"document":${encodeShown(document, query)}}` : `${head}}`;
  }
}

function encodeShown(row: Buffer, { fields, meta }: FeedQuery): string {
  if (!fields) return encodeStoredJson(row, meta);
  const shown = presentDocument(selectFields(decodeStored(row), fields), meta);
  return Buffer.from(JSON.stringify(shown)).latin1Slice();
}
