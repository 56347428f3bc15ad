import type { ServerResponse } from 'node:http';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import type { Caller } from '../../access/caller.js';
import { requireFollowable } from '../admit-follower.js';
import { openFeedCursor } from '../feed-cursor.js';
import { openFollowing, type Following } from '../read-page.js';
import type { EventForm } from './batch.js';
import { Follower } from './follower.js';
import { readLiveQuery } from './live-query.js';
import { Stream } from './stream.js';
import { streamHub } from './stream-hub.js';

/** What one subscription of a stream asks for. */
export interface Subscription {
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

/**
 * Checks all that can be refused before the first byte, and takes a place: 400, 401, 403, 404 and 409 as for lists,
 * 403, 429 and 503 when there are too many. The stream begins when the answer function is called with the response
 * whose headers have been sent; `giveUp` instead when there is no client any more.
 */
export async function openStream(
  app: App,
  request: StreamRequest,
): Promise<{ begin(res: ServerResponse): void; giveUp(): void }> {
  const { caller, subscriptions, hasIds } = request;
  const none = new AbortController().signal;
  const resolveWith = (at: number, signal: AbortSignal) => async (since: string | null) => {
    const { collection, query } = subscriptions[at]!;
    requireFollowable(caller, collection);
    return openFollowing(app, caller, collection, (found) => ({ ...readLiveQuery(query, found), since }), signal);
  };
  const followings: Following[] = [];
  for (const [n, { since }] of subscriptions.entries()) {
    try {
      const following = await resolveWith(n, none)(since);
      requireGenuine(app, following);
      followings.push(following);
    } catch (error) {
      throw hasIds ? error : naming(n, error);
    }
  }
  const hub = streamHub(app);
  const place = hub.takeStream(caller, request.address);
  return {
    giveUp: () => place.release(),
    begin(res) {
      const { bearer } = caller;
      const expiresMs = bearer.state === 'user' ? (bearer.token?.expiresMs ?? Infinity) : Infinity;
      const stream = new Stream(res, caller, request.origin, expiresMs);
      const { signal } = stream;
      if (signal.aborted) {
        place.release();
        return;
      }
      signal.addEventListener('abort', () => place.release(), { once: true });
      const followers = followings.map((_, n) => {
        const form: EventForm = { n, hasIds };
        return new Follower(hub.shares, stream, form, resolveWith(n, signal));
      });
      hub.add(stream, followers);
      for (const [n, follower] of followers.entries()) follower.start({ ...followings[n]!, signal });
    },
  };
}

/** A cursor of somebody else is refused; one that has expired is answered by a reset. */
function requireGenuine(app: App, { scope, query: { since } }: Following): void {
  if (since === null || since === 'now') return;
  try {
    openFeedCursor(app.secrets, scope, since);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'CURSOR_EXPIRED') throw error;
  }
}

/** The refusal of a stream names the subscription that is to blame. */
function naming(n: number, error: unknown): unknown {
  if (!(error instanceof AppError) || error.details) return error;
  const { kind, code, message, retryAfterSeconds, headers } = error;
  const details = [{ field: `subscriptions.${n}`, rule: 'subscription', message }];
  return new AppError(kind, code, message, { details, retryAfterSeconds, headers, cause: error });
}
