import { isDeepStrictEqual } from 'node:util';
import { EJSON, type Document } from 'bson';
import type { App } from '../../app.js';
import { ownTurn } from '../../scheduler.js';
import { findVisibility, readAccess, visibilityNeedsAccount, type ReadAccess } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import type { FieldVisibility } from '../access/rules/field-visibility.js';
import type { ChangeLog, FoundChange } from '../changes/change-log.js';
import { openChangeLog } from '../changes/open-change-log.js';
import { requireChanges } from '../changes/change-log.js';
import { requireCollection } from '../collections/collection-store.js';
import type { Collection } from '../collections/collection.js';
import { rulesOf } from '../collections/rules/collection-rules.js';
import { allOf } from '../documents/query/keyset-filter.js';
import { requireReadableNames } from '../documents/reply/redact-fields.js';
import { decodeMeta } from '../documents/reply/encode-document.js';
import { visibleDocuments } from '../documents/store/document.js';
import { documentStore } from '../documents/store/document-store.js';
import { readRows, ReplySize } from '../documents/reply/reply-size.js';
import { findSameView, openSets, readSetView, endTransition, type FollowedSets, type SetView } from './set-view.js';
import { cursorExpired, openFeedCursor, type FeedPosition, type FeedScope } from './feed-cursor.js';
import type { FeedQuery } from './feed-query.js';
import {
  findEnds,
  hasSameRefs,
  mayLoseRefs,
  openRefs,
  readRefNews,
  referringFilter,
  type FollowedRefs,
  type RefNews,
} from './populating.js';
import type { WindowPart } from './window-order.js';

/** A page holds no more of documents, but for one that alone is larger. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

export interface FeedPage {
  /** The rules as a filter, by which the page was read. */
  readable: Document | null;
  items: FoundChange[];
  position: FeedPosition;
  more: boolean;
  /** Of a window: all that it shows. */
  window?: WindowPart;
  /** The follower forgets what it was shown before. */
  isReset?: boolean;
}

/** A followed collection with its conditions, and the rights of the follower. */
export interface Following {
  app: App;
  collection: Collection;
  query: FeedQuery;
  caller: Caller;
  scope: FeedScope;
  /** The rules as a filter; null if all callers see all documents. Membership sets are those of the opening. */
  readable: Document | null;
  /** The same with the names of sets. */
  shape: Document | null;
  /** The sets of the caller that the rules ask about; null for none. */
  sets: FollowedSets | null;
  /** The collections that documents are populated from; null for none. */
  refs: FollowedRefs | null;
  log: ChangeLog;
  signal: AbortSignal;
}

/**
 * Settles what a caller follows, by the rules as they are now: 404 COLLECTION_NOT_FOUND, 401 as for lists, 409
 * CHANGES_OFF, and what `read` has to say of the query.
 */
export async function openFollowing(
  app: App,
  caller: Caller,
  collectionName: string,
  read: (collection: Collection) => FeedQuery,
  signal: AbortSignal,
): Promise<Following> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  const conditionsOf = (): readonly Document[] => read(collection).conditions;
  // Of a MongoDB no set is older than the request: two processes would else have a follower start over in turns.
  const fresh = !app.db.changeLogs;
  const first = await readAccess(app, collection, caller, { conditions: conditionsOf, fresh });
  requireChanges(app, collection);
  const visibility = await findVisibility(app, collection, caller);
  const wanted = read(collection);
  requireReadableNames(visibility, { ...wanted, sort: wanted.window?.sort ?? [] });
  // Queries are shared by those who ask for the same.
  const query = visibility ? { ...wanted, visibility } : wanted;
  // Positions first: what is read of the sets afterwards is never older.
  const sets = app.db.changeLogs && first.asked ? await openSets(app, collection.projectId, first.asked) : null;
  const access = sets ? await readAccess(app, collection, caller, { conditions: conditionsOf }) : first;
  const [readable, shape] = [access.filter, followedShape(app, access)];
  const { filterText, conditions } = query;
  const audience = audienceOf(collection, caller, shape, visibility);
  const refs = await openRefs(app, caller, collection, query);
  if (refs) audience.admitted = `${audience.admitted ?? ''} ${refs.key}`;
  const scope = { collection, filterText, conditions, ...audience };
  const log = openChangeLog(app, collection);
  return { app, collection, caller, query, scope, readable, shape, sets, refs, log, signal };
}

/**
 * What has to stay the same for a follower to go on. On a MongoDB the values of sets are part of it, as nobody knows
 * there what a set was before: when one changes the follower starts over.
 */
function followedShape(app: App, { shape, asked }: ReadAccess): Document | null {
  if (app.db.changeLogs || !asked) return shape;
  const values = [...asked.answers].map(([key, answer]) => [
    key,
    typeof answer === 'boolean' ? answer : [...answer].sort(),
  ]);
  return { shape, values };
}

/** True if the rules still come to the same for the caller, whose account may say something else since. */
export async function hasSameRights(
  { app, collection, query, shape, refs }: Following,
  caller: Caller,
): Promise<boolean> {
  if (refs && !(await hasSameRefs(app, caller, collection, query, refs))) return false;
  const visibility = await findVisibility(app, collection, caller);
  const access = await readAccess(app, collection, caller, { conditions: () => query.conditions });
  return visibility?.key === query.visibility?.key && isDeepStrictEqual(followedShape(app, access), shape);
}

/** True where the rights of a follower may change without a change that its group would notice. */
export function mayLoseRights({ app, collection, refs }: Following): boolean {
  if (refs && mayLoseRefs(refs)) return true;
  const { attributes, sets } = rulesOf(collection).read;
  return attributes.length > 0 || visibilityNeedsAccount(collection) || (!app.db.changeLogs && sets.length > 0);
}

/**
 * The callers who share a filter of rules: all for whom the same rules result in the same filter and show the same
 * fields.
 */
function audienceOf(
  collection: Collection,
  { bearer }: Caller,
  readable: Document | null,
  visibility: FieldVisibility | null,
): Pick<FeedScope, 'userId' | 'admitted'> {
  if (collection.rls) {
    return { userId: readable && String(readable[collection.rls.ownerField]), admitted: visibility?.key ?? null };
  }
  if (!readable && !visibility) return { userId: null, admitted: null };
  const text = EJSON.stringify(readable) + (visibility?.key ?? '');
  const userId = bearer.state === 'user' ? bearer.userId : null;
  const isOwn = userId !== null && text.includes(userId);
  return { userId: isOwn ? userId : null, admitted: isOwn ? text.replaceAll(userId, 'user.id') : text };
}

/** Where the query begins. 400 INVALID_CURSOR, 410 CURSOR_EXPIRED. */
export async function findStart({ app, scope, query, log, sets, refs }: Following): Promise<FeedPosition> {
  const { since } = query;
  if (since !== null && since !== 'now') return openFeedCursor(app.secrets, scope, since);
  const start = { ...(await log.begin()), shown: null, isListing: since === null };
  return { ...start, ...(sets && { sets: sets.at }), ...(refs && { refs: await findEnds(refs.collections) }) };
}

/**
 * The page behind a position; `size` counts its documents as they are read. 410 CURSOR_EXPIRED when the log does not
 * reach back to it.
 */
export async function readPage(
  following: Following,
  from: FeedPosition,
  size: ReplySize,
  pageBytes = MAX_PAGE_BYTES,
): Promise<FeedPage> {
  const { app, query, sets } = following;
  const visible = visibleDocuments();
  const view = sets && (findSameView(sets, following.readable, from) ?? (await readSetView(app, sets, from)));
  const { readable, earlier } = view ?? { readable: following.readable, earlier: following.readable };
  const shown = (access: Document | null, there = visible): Document =>
    allOf([...(access ? [access] : []), there, ...query.conditions]);
  const items = new Map<string, FoundChange>();
  let position = from;
  let bytes = 0;
  if (view) {
    position = { ...from, sets: view.sets };
    if (view.isChanged) {
      const told = await readTransition(following, view, shown);
      for (const item of told.items) items.set(item.id, item);
      bytes = told.bytes;
      size.add(bytes);
      position.until = told.until;
    }
  }
  if (from.isListing) {
    const filter = shown(readable, visibleDocuments());
    const listed = await readListed(following, filter, from, { size, pageBytes });
    for (const item of listed.items) items.set(item.id, item);
    bytes += listed.bytes;
    position = { ...position, shown: listed.last, isListing: !listed.isEnd };
    if (!listed.isEnd) return { readable, items: [...items.values()], position, more: true };
  }
  // A change of sets that fills the page must not keep the log from being read.
  const limit = Math.max(view?.isChanged ? 1 : 0, query.limit - items.size);
  if (limit <= 0 || bytes >= pageBytes) return { readable, items: [...items.values()], position, more: true };
  const { conditions } = query;
  const maxBytes = Math.min(pageBytes - bytes, size.batchBytes);
  const search = { after: position, filter: shown(readable), readable: earlier, conditions, limit, maxBytes };
  const found = await following.log.read(search);
  if (!found) throw cursorExpired();
  if (!found.isEnd && maxBytes < pageBytes - bytes && found.changes.length < limit) size.requireWhole();
  for (const change of found.changes) {
    size.add(change.document?.length ?? 0);
    items.delete(change.id);
    items.set(change.id, change);
  }
  const reached = endTransition({ ...position, seq: found.seq });
  const more = !found.isEnd || reached.until !== undefined;
  if (following.refs && !more) {
    const news = await readNewsOf(following.refs, reached);
    for (const item of await readReferring(following, news, shown(readable))) {
      size.add(item.document!.length);
      items.delete(item.id);
      items.set(item.id, item);
    }
    reached.refs = news.map(({ to }) => to);
  }
  return { readable, items: [...items.values()], position: reached, more };
}

/** What has changed of the collections that documents refer to. 410 CURSOR_EXPIRED. */
export function readNewsOf(refs: FollowedRefs, { refs: known }: FeedPosition): Promise<RefNews[]> {
  return Promise.all(refs.collections.map((ref, n) => readRefNews(ref, known![n]!)));
}

/** The documents that refer to changed ones. 410 CURSOR_EXPIRED where they are too many. */
export async function readReferring(
  { app, collection, refs, signal }: Following,
  news: readonly RefNews[],
  filter: Document,
): Promise<FoundChange[]> {
  const referring = referringFilter(refs!.collections, news);
  if (!referring) return [];
  const cursor = documentStore(app, collection)
    .find(allOf([filter, referring]), { raw: true, signal })
    .limit(MAX_TRANSITION + 1)
    .maxTimeMS(app.config.queryTimeoutMs);
  const rows = await readRows(cursor, new ReplySize());
  const bytes = rows.reduce((sum, row) => sum + row.length, 0);
  if (rows.length > MAX_TRANSITION || bytes > MAX_TRANSITION_BYTES) throw cursorExpired();
  const at = new Date(app.clock.now());
  return rows.map((row) => ({ id: String(decodeMeta(row)._id), at, document: row }));
}

/** Most documents that are reported for a change of sets: beyond it is shorter to start over. */
const MAX_TRANSITION = 1_000;
const MAX_TRANSITION_BYTES = 4 * 1024 * 1024;

/** What a change of sets takes in, as it is, and what it takes out. 410 CURSOR_EXPIRED where that is too much. */
async function readTransition(
  { app, collection, log, signal }: Following,
  { enter, leave }: SetView,
  shown: (access: Document) => Document,
): Promise<{ items: FoundChange[]; bytes: number; until: number }> {
  const at = new Date(app.clock.now());
  const store = documentStore(app, collection);
  const options = { raw: true, signal };
  const find = async (filter: Document | null, isWhole: boolean): Promise<Buffer[]> => {
    if (!filter) return [];
    const cursor = store
      .find(shown(filter), options)
      .limit(MAX_TRANSITION + 1)
      .maxTimeMS(app.config.queryTimeoutMs);
    const read = isWhole ? cursor : cursor.project({ _id: 1 });
    return readRows(read, new ReplySize());
  };
  const [entered, left] = [await find(enter, true), await find(leave, false)];
  const bytes = entered.reduce((sum, row) => sum + row.length, 0);
  if (entered.length + left.length > MAX_TRANSITION || bytes > MAX_TRANSITION_BYTES) throw cursorExpired();
  const ids = (row: Buffer): string => String(decodeMeta(row)._id);
  const items = [
    ...left.map((row) => ({ id: ids(row), at, document: null })),
    ...entered.map((row) => ({ id: ids(row), at, document: row })),
  ];
  // What changes from now on is told by the log under the new sets.
  return { items, bytes, until: (await log.begin()).seq };
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
  { size, pageBytes }: { size: ReplySize; pageBytes: number },
): Promise<Listed> {
  const behind = from.shown === null ? [] : [{ _id: { $gt: from.shown } }];
  const cursor = documentStore(app, collection)
    .find(allOf([filter, ...behind]), { raw: true, signal, batchBytes: Math.min(2 * pageBytes, size.batchBytes) })
    .sort({ _id: 1 })
    .limit(query.limit)
    .maxTimeMS(app.config.queryTimeoutMs);
  const at = new Date(app.clock.now());
  const listed: Listed = { items: [], bytes: 0, last: from.shown, isEnd: true };
  try {
    while (listed.isEnd && (await cursor.hasNext())) {
      if (listed.items.length > 0) await ownTurn({ project: collection.projectId.toHexString(), address: '' });
      // With `raw` the driver hands out bytes, of which its types know nothing.
      for (const row of cursor.readBufferedDocuments() as unknown as Buffer[]) {
        const { _id, updatedAt } = decodeMeta(row);
        size.add(row.length);
        listed.bytes += row.length;
        listed.items.push({ id: String(_id), at: updatedAt instanceof Date ? updatedAt : at, document: row });
        listed.last = _id;
        if (listed.items.length < query.limit && listed.bytes < pageBytes) continue;
        listed.isEnd = false;
        break;
      }
    }
  } finally {
    await cursor.close();
  }
  return listed;
}
