import { ApiError, type Failure } from './api-error.js';
import { randomKey, type Connection } from './connection.js';
import { keepSet, withSorted } from './document-set.js';
import { platform, tellListener, warn } from './platform.js';
import type { FieldName, FilterOf, Part, RefPath, Shown, Sort } from './project.js';
import { buildQuery } from './query.js';
import { advance, openNews, type FollowEvent, type News, type Subscription } from './stream.js';
import type { Tabs } from './client-tabs.js';

/** Which documents to follow. */
export interface FollowOptions<P, N, K extends string, R extends string> {
  filter?: FilterOf<P, N>;
  fields?: readonly K[];
  /** At most two Ref fields to be replaced by the documents they name, which are followed too. */
  populate?: readonly R[];
  /** The first so many documents as they are sorted; a document that is pushed out is reported as `gone`. */
  limit?: number;
  /** `-createdAt` unless said; `['-views', 'title']` for several. */
  sort?: Sort<Part<P, N, 'Fields'>> | readonly Sort<Part<P, N, 'Fields'>>[];
  /** A cursor, or `now` for what comes; without it all documents first. */
  since?: string;
}

/** Follows a collection: a function, with `set` for a list that keeps itself. */
export interface Follow<P, N> {
  /**
   * Reports changes until the function that it returns is called, through outages and sign-ins: what only users may
   * read waits until one signs in.
   */
  <K extends FieldName<P, N> = never, R extends RefPath<P, N> = never>(
    options: FollowOptions<P, N, K, R>,
    listener: (event: FollowEvent<Shown<P, N, K, R>>) => void,
  ): () => void;
  /** Shows the documents that match whenever they have changed, sorted as a list. */
  set<K extends FieldName<P, N> = never, R extends RefPath<P, N> = never>(
    options: Omit<FollowOptions<P, N, K, R>, 'since'> & { onError?: (error: ApiError) => void },
    show: (documents: Shown<P, N, K, R>[]) => void,
  ): () => void;
}

/** Hears the cursor behind each event too, to go on there. */
type Listener = (event: FollowEvent<never>, cursor?: string) => void;

interface AnyFollowOptions {
  filter?: object;
  fields?: readonly string[];
  populate?: readonly string[];
  limit?: number;
  sort?: string | readonly string[];
  since?: string;
}

const DEFAULT_SORT = '-createdAt';

interface Follower {
  subscription: Subscription;
  listener: Listener;
  /** Empties what is shown: it is another user's. */
  clear?: (() => void) | undefined;
  /** Something was reported since the last `ready`, or nothing yet. */
  isBehind: boolean;
  /** Rejected for this user, or without one: requested again when a user signs in. */
  isWaiting: boolean;
}

/** All followers of a page. */
export interface Followers {
  follow(collection: string): Follow<never, never>;
  /** Another user sees other documents: all subscriptions start over. */
  startOver(): void;
}

/** `isSignedIn` is undefined of a client whose user never changes. */
export function openFollowers(
  connection: Connection,
  isShared: boolean,
  isSignedIn: (() => boolean) | undefined,
): Followers {
  const followers = new Map<string, Follower>();
  const own = (): Subscription[] =>
    [...followers.values()].flatMap(({ subscription, isWaiting }) => (isWaiting ? [] : [subscription]));
  const followAlone = (): Tabs => ({ want: openNews(connection, take).set });
  let tabs: Tabs | undefined;
  /** Tabs that see the same session share a stream, where the platform has what that needs. */
  const openShared = async (): Promise<void> => {
    try {
      const { openTabs } = await import('./client-tabs.js');
      tabs = openTabs({
        ...{ name: connection.name, tab: randomKey(), platform, warn, own, take },
        ...{ status: connection.status, note: connection.note },
        lead: (tell) => openNews(connection, tell),
        revive: (error) => new ApiError((error as Error).message, error as Failure),
      });
    } catch (error) {
      warn('tabs cannot share a stream', error);
      tabs = followAlone();
    }
    tabs.want(own());
  };
  let isOpening = false;
  const refresh = (): void => {
    if (tabs) return tabs.want(own());
    if (isOpening) return;
    isOpening = true;
    if (isShared && platform.BroadcastChannel && platform.navigator?.locks) void openShared();
    else (tabs = followAlone()).want(own());
  };

  function take(news: News): void {
    const follower = followers.get(news.id);
    if (!follower) return;
    advance(follower.subscription, news);
    const { id, event } = news;
    if (!event) return;
    if (event.type === 'ready') {
      // A stream says it again whenever it begins, and as a sign of life.
      if (!follower.isBehind) return;
      follower.isBehind = false;
    } else {
      follower.isBehind = true;
    }
    if (event.type === 'error') {
      const { status, code } = event.error;
      follower.isWaiting = isSignedIn !== undefined && (status === 401 || status === 403) && !/^API_KEY/.test(code);
      if (!follower.isWaiting) followers.delete(id);
      refresh();
      if (follower.isWaiting && status === 401 && !isSignedIn!()) return;
    }
    tellListener(follower.listener, event as never, news.cursor);
  }

  const begin = (
    collection: string,
    { filter, sort = DEFAULT_SORT, ...rest }: AnyFollowOptions,
    listener: Listener,
    clear?: () => void,
  ): (() => void) => {
    const follower: Follower = {
      subscription: {
        id: randomKey(),
        collection,
        filter: buildQuery(filter, {}),
        ...rest,
        ...(rest.limit && { sort: String(sort) }),
      },
      listener,
      clear,
      isBehind: true,
      isWaiting: false,
    };
    followers.set(follower.subscription.id, follower);
    refresh();
    return () => {
      if (followers.delete(follower.subscription.id)) refresh();
    };
  };

  return {
    follow(collection) {
      const follow = (options: AnyFollowOptions, listener: Listener): (() => void) =>
        begin(collection, options, listener);
      follow.set = (
        { onError, ...options }: AnyFollowOptions & { onError?: (error: ApiError) => void },
        show: (documents: never[]) => void,
      ) => {
        const by = [options.sort ?? DEFAULT_SORT].flat();
        const { keep, clear } = keepSet(by, show);
        const tell: Listener = (event) => (event.type === 'error' ? onError?.(event.error) : keep(event));
        return begin(collection, withSorted(options, by), tell, clear);
      };
      // One implementation stands for the changes of every collection's type.
      return follow as Follow<never, never>;
    },
    startOver() {
      for (const follower of [...followers.values()]) {
        followers.delete(follower.subscription.id);
        const { since, ...subscription } = follower.subscription;
        // Under another id, so that replies still under way for the previous user are dropped.
        follower.subscription = { ...subscription, id: randomKey(), ...(since === 'now' && { since }) };
        follower.isWaiting = false;
        follower.isBehind = true;
        followers.set(follower.subscription.id, follower);
        if (since !== 'now') tellListener(follower.listener, { type: 'reset' });
        follower.clear?.();
      }
      if (followers.size > 0) refresh();
    },
  };
}
