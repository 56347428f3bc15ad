import { forbidden, AppError, retold } from '../../../errors.js';
import type { Caller } from '../../access/caller.js';
import { USERS } from '../../collections/users-collection.js';
import type { ServerResponse } from 'node:http';
import type { App } from '../../../app.js';
import { estimateQuery } from '../../../http/admission/weights.js';
import { turn } from '../../../scheduler.js';
import { openFeedCursor, type FeedPosition } from '../feed-cursor.js';
import { openFollowing, type Following } from '../read-page.js';
import { Follower, type FollowRequest } from './follower.js';
import { Stream } from './stream.js';
import { streamHub, type Place } from './stream-hub.js';
import { LRUCache } from 'lru-cache';
import type { Collection } from '../../collections/collection.js';
import { filtersOf, findOperator } from '../../documents/query/parse-list-query.js';
import { badQuery, readQueryText } from '../../documents/reply/query-text.js';
import { FEED_PARAMETERS, readFeedQuery, type FeedQuery } from '../feed-query.js';

/**
 * As in `/api/data`; but the secret key may follow `users`, as it may have webhooks tell of them. 403 USERS_BLOCKED.
 */
export function requireFollowable(caller: Caller, collectionName: string): void {
  if (!collectionName.toLowerCase().startsWith(USERS)) return;
  if (collectionName === USERS && caller.key.type === 'secret') return;
  throw forbidden('USERS_BLOCKED', 'The users collection is reached through /api/userAuth only');
}

/** A live filter is tried on every change, so it may be no more than this. */
const MAX_CONDITIONS = 20;
const MAX_LISTED_VALUES = 100;
/** Documents of a page that a stream is sent. */
const PAGE_LIMIT = 200;
/** Parameters of pages. */
const REFUSED = ['limit', 'wait'];

/** Queries that were read lately, by collection, its version and the text: thousands of streams ask for the same. */
const lately = new LRUCache<string, FeedQuery>({ max: 1_000 });
/** Longer ones are not remembered. */
const MAX_REMEMBERED_CHARACTERS = 512;

/**
 * Reads the query of a subscription: that of changes within the limits of live filters. 400 INVALID_QUERY. Those who
 * ask for the same share what it answers.
 */
function readLiveQuery(raw: string, collection: Collection): FeedQuery {
  if (raw.length > MAX_REMEMBERED_CHARACTERS) return parseLiveQuery(raw, collection);
  const key = `${collection._id.toHexString()} ${collection.version} ${raw}`;
  let query = lately.get(key);
  if (!query) lately.set(key, (query = parseLiveQuery(raw, collection)));
  return query;
}

function parseLiveQuery(raw: string, collection: Collection): FeedQuery {
  const text = readQueryText(raw);
  const refused = REFUSED.find((name) => text.has(name) && !(name === 'limit' && text.has('sort')));
  if (refused) throw badQuery(`${refused} is not a parameter of a stream${refused === 'limit' ? ' without sort' : ''}`);
  const query = readFeedQuery(raw, collection);
  const filters = filtersOf(text, collection).filter(([name]) => !FEED_PARAMETERS.has(name));
  if (filters.length > MAX_CONDITIONS) {
    throw badQuery(`The filter of a stream may have at most ${MAX_CONDITIONS} conditions`);
  }
  for (const [name, values] of filters) {
    const { suffix, inStreams, takes } = findOperator(collection, name);
    if (!inStreams) {
      throw badQuery(
        `The filter of a stream may not use ${suffix}: filter by other fields, or ask for changes by wait`,
      );
    }
    const listed = values.reduce((count, value) => count + value.split(/,|%2c/i).length, 0);
    if (takes === 'list' && listed > MAX_LISTED_VALUES) {
      throw badQuery(`${name} of a stream may list at most ${MAX_LISTED_VALUES} values`);
    }
  }
  return { ...query, limit: PAGE_LIMIT };
}

/** What a subscription costs those who keep it: itself, each condition and each value that a condition lists. */
function countConditions({ conditions }: FeedQuery): number {
  return 1 + conditions.reduce((sum, condition) => sum + countLeaves(condition), 0);
}

function countLeaves(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, inner) => sum + countLeaves(inner), 0);
}

/** One subscription of a stream. */
interface Subscription {
  collection: string;
  /** Filters, `fields` and `meta` as a query string. */
  query: string;
  since: string | null;
}

export interface StreamRequest {
  caller: Caller;
  subscriptions: readonly Subscription[];
  /** The client's network address, for the limit of each. */
  address: string;
  origin: string | null;
  /** Events bear their cursor as `id:` too. */
  hasIds: boolean;
}

/** One subscription of a stream. */
class OwnFollowRequest implements FollowRequest {
  constructor(
    private readonly app: App,
    private readonly caller: Caller,
    private readonly collection: string,
    private readonly query: string,
  ) {}

  async resolve(since: string | null, signal: AbortSignal): Promise<Following> {
    const { app, caller, collection, query } = this;
    requireFollowable(caller, collection);
    return openFollowing(app, caller, collection, (found) => ({ ...readLiveQuery(query, found), since }), signal);
  }
}

/** About how long the event loop is kept by reading one subscription. */
const SUBSCRIPTION_MS = 0.05;

/** Nothing is read for a stream before it begins: there is nothing to break off. One for all, since each costs. */
const NEVER = new AbortController().signal;

/**
 * Checks all that can be refused before the first byte, and takes a place: 400, 401, 403, 404 and 409 as for lists,
 * 403, 429 and 503 when there are too many. The stream begins when `begin` is called with the response whose headers
 * have been sent; `giveUp` instead when there is no client any more.
 */
export async function openStream(app: App, request: StreamRequest): Promise<OpenedStream> {
  const { caller, subscriptions, hasIds } = request;
  const all: Opened[] = [];
  const tenant = { project: caller.project._id.toHexString(), address: request.address };
  for (const [n, subscription] of subscriptions.entries()) {
    const wanted = new OwnFollowRequest(app, caller, subscription.collection, subscription.query);
    await turn(SUBSCRIPTION_MS + estimateQuery(subscription.query.length), tenant, 'subscription');
    try {
      const following = await wanted.resolve(subscription.since, NEVER);
      all.push({ wanted, following, from: findGenuine(app, following) });
    } catch (error) {
      throw hasIds ? error : namingSubscription(n, error);
    }
  }
  const conditions = all.reduce((sum, { following }) => sum + countConditions(following.query), 0);
  return new OpenedStream(app, request, streamHub(app).takeStream(tenant, caller.project, conditions), all);
}

/** A subscription that was found good, and the position of its cursor; null when it has none that is good. */
interface Opened {
  wanted: FollowRequest;
  following: Following;
  from: FeedPosition | null;
}

/** A stream that may begin. No closures: what one of them needs would be held as long as the stream. */
class OpenedStream {
  constructor(
    private readonly app: App,
    private readonly request: StreamRequest,
    private readonly place: Place,
    private readonly all: readonly Opened[],
  ) {}

  giveUp(): void {
    this.place.release();
  }

  begin(res: ServerResponse): void {
    const { caller, origin, hasIds } = this.request;
    const { bearer } = caller;
    const expiresMs = bearer.state === 'user' ? (bearer.token?.expiresMs ?? Infinity) : Infinity;
    const stream = new Stream(res, caller, origin, expiresMs);
    if (stream.isOver) {
      this.place.release();
      return;
    }
    const hub = streamHub(this.app);
    const followers = this.all.map(({ wanted }, n) => new Follower(hub.shares, stream, { n, hasIds }, wanted));
    hub.add(stream, followers, this.place);
    for (const [n, follower] of followers.entries()) {
      const { following, from } = this.all[n]!;
      follower.start(following, from);
    }
  }
}

/** The position of a cursor. Another user's cursor is rejected; null for one that has expired, which causes a reset. */
function findGenuine(app: App, { scope, query: { since } }: Following): FeedPosition | null {
  if (since === null || since === 'now') return null;
  try {
    return openFeedCursor(app.secrets, scope, since);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'CURSOR_EXPIRED') throw error;
    return null;
  }
}

/** The refusal of a stream names the subscription that is to blame. */
export function namingSubscription(n: number, error: unknown): unknown {
  if (!(error instanceof AppError) || error.details) return error;
  const { message } = error;
  return retold(error, message, [{ n, field: `subscriptions.${n}`, rule: 'subscription', message }]);
}
