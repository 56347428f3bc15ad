import type { App } from '../../app.js';
import { type Caller, tenantOfCaller } from '../access/caller.js';
import { hintOf, type FoundChange } from '../changes/change-log.js';
import { requireCollection } from '../collections/collection-store.js';
import type { EncodedReply } from '../documents/reply/encoded-reply.js';
import { listError } from '../documents/reply/query-errors.js';
import { readWithin, type ReplySize } from '../documents/reply/reply-size.js';
import { openFeedCursor, signFeedCursor, type FeedPosition } from './feed-cursor.js';
import { encodeChange, readFeedQuery, type FeedQuery } from './feed-query.js';
import { findStart, hasSameRights, openFollowing, type Following, type FeedPage } from './read-page.js';
import { isSameWindow, readNews } from './read-window.js';
import type { Hints } from '../../platform/processes/hints.js';

/** A hint may get lost: so often it is looked without one. */
const LOOK_MS = 500;

/** Means of a request that may wait. */
export interface FeedRequest {
  signal: AbortSignal;
  /** The caller, judged again: the key may be revoked and the token over while the request waits. */
  settle: () => Promise<Caller>;
  /** Waits without counting as a request that is under way; 503 BUSY when too many do. */
  aside: (work: () => Promise<void>) => Promise<void>;
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
  const open = (): Promise<Following> =>
    openFollowing(app, caller, collectionName, (found) => readFeedQuery(rawQuery, found), signal);
  let following = await open();
  let position = await findStart(following);
  const waitsUntil = performance.now() + following.query.waitMs;
  for (;;) {
    const leftMs = waitsUntil - performance.now();
    // From before the page is read: a change that comes during it is not waited for.
    const hint = leftMs > 0 ? waitForAny(app.hints, topicsOf(following), Math.min(LOOK_MS, leftMs), signal) : null;
    const mayWait = hint !== null && !signal.aborted && app.readiness.isReady();
    if (!mayWait || !isSameWindow(following, position)) {
      const { page, reply } = await readReply(following, caller, position);
      if (!mayWait || page.items.length > 0 || page.more || page.isReset) return reply;
      position = page.position;
    }
    await aside(() => hint);
    caller = await settle();
    // A waiting request must not be answered by rules that have changed.
    if (await isSame(following, caller)) continue;
    const cursor = signFeedCursor(app.secrets, following.scope, position);
    following = await open();
    // Expired by other rules; another change of the collection, of a field or an index, is nothing to start over for.
    position = openFeedCursor(app.secrets, following.scope, cursor);
  }
}

/** What is waited for: changes of the collection, of the caller's sets, and of documents that are populated. */
function topicsOf({ collection, sets, refs }: Following): string[] {
  const others = [...(sets?.sets ?? []), ...(refs?.collections ?? [])];
  return [collection, ...others.map((other) => other.collection)].map(({ _id }) => hintOf(_id));
}

async function isSame(following: Following, caller: Caller): Promise<boolean> {
  const { app, collection } = following;
  const now = await requireCollection(app, caller.project._id, collection.name);
  const isAdmitted = await hasSameRights(following, caller);
  return isAdmitted && String(now._id) === String(collection._id) && now.version === collection.version;
}

async function readReply(
  following: Following,
  caller: Caller,
  position: FeedPosition,
): Promise<{ page: FeedPage; reply: EncodedReply }> {
  const { app, query, scope, signal } = following;
  try {
    return await readWithin(
      app.replies,
      tenantOfCaller(caller),
      async (size) => {
        const page = await readNews(following, position, size);
        const cursor = signFeedCursor(app.secrets, scope, page.position);
        return { page, reply: encodePage(page, cursor, query, size) };
      },
      signal,
    );
  } catch (error) {
    throw listError(error, signal);
  }
}

function encodePage(
  { items, more, isReset }: FeedPage,
  cursor: string,
  query: FeedQuery,
  size: ReplySize,
): EncodedReply {
  const reset = isReset ? ',"reset":true' : '';
  const closing = `],"cursor":${JSON.stringify(cursor)},"more":${more}${reset}},"message":"Changes fetched"}`;
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
  for (const [index, item] of items.entries()) yield `${index > 0 ? ',' : ''}{${encodeChange(item, query)}}`;
}

/** Resolves at the next hint about one of the topics, after `ms`, or when `signal` aborts. */
export async function waitForAny(
  hints: Hints,
  topics: readonly string[],
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const [topic = '', ...more] = topics;
  if (more.length === 0) return hints.wait(topic, ms, signal);
  const done = new AbortController();
  const ends = AbortSignal.any([signal, done.signal]);
  await Promise.race(topics.map((each) => hints.wait(each, ms, ends)));
  done.abort();
}
