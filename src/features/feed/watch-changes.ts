import { setTimeout as wait } from 'node:timers/promises';
import type { App } from '../../app.js';
import { AppError } from '../../errors.js';
import type { Caller } from '../access/caller.js';
import { signFeedCursor } from './feed-cursor.js';
import { encodeChange, readFeedQuery } from './feed-query.js';
import { ReplySize } from '../documents/reply/reply-size.js';
import { findStart, openFollowing, type Following } from './read-page.js';
import { readNews } from './read-window.js';

/** What is watched of a collection. */
export interface WatchRequest {
  collectionName: string;
  /** Filters and `fields` as a query string. */
  query: string;
  since: string | null;
  signal: AbortSignal;
}

/** News, and the cursor to go on from. */
export interface WatchedPage {
  /** The JSON of each change. */
  lines: string[];
  cursor: string;
  /** True once everything known so far is as a list shows it. */
  isCaughtUp: boolean;
  /** True if everything known before is to be forgotten: the cursor had expired. */
  isReset: boolean;
}

/** Changes that other processes make are looked for so often. */
const LOOK_MS = 250;

/**
 * The changes of a collection as the caller is shown them, until `signal` aborts. 400 INVALID_CURSOR, 401 and 403 as
 * for lists, 404, 409 CHANGES_OFF; the rules are looked at again for each page.
 */
export async function* watchChanges(app: App, caller: Caller, request: WatchRequest): AsyncGenerator<WatchedPage> {
  const { collectionName, query, signal } = request;
  const open = (since: string | null): Promise<Following> =>
    openFollowing(
      app,
      caller,
      collectionName,
      (collection) => ({ ...readFeedQuery(query, collection), since }),
      signal,
    );
  let cursor = request.since;
  while (!signal.aborted) {
    try {
      const following = await open(cursor);
      const page = await readNews(following, await findStart(following), new ReplySize());
      cursor = signFeedCursor(app.secrets, following.scope, page.position);
      const { isReset = false } = page;
      const lines = page.items.map((item) => Buffer.from(encodeChange(item, following.query), 'latin1').toString());
      yield { lines: lines.map((line) => `{${line}}`), cursor, isCaughtUp: !page.more, isReset };
      if (!page.more) await wait(LOOK_MS, undefined, { signal }).catch(() => undefined);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'CURSOR_EXPIRED') throw error;
      cursor = null;
      yield { lines: [], cursor: '', isCaughtUp: false, isReset: true };
    }
  }
}
