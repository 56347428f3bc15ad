import { ApiError, type Failure } from './api-error.js';
import { randomKey, type Connection } from './connection.js';
import { keepSet, withSorted } from './document-set.js';
import { tellListener } from './platform.js';
import type { FieldName, FilterOf, Part, Shown, Sort } from './project.js';
import { buildQuery } from './query.js';
import { openNews, type FollowEvent, type News, type Subscription } from './stream.js';
import { openTabs } from './tabs.js';

/** Which documents to follow. */
export interface FollowOptions<P, N, K extends string> {
  filter?: FilterOf<P, N>;
  fields?: readonly K[];
  /** A cursor, or `now` for what comes; without it all documents first. */
  since?: string;
}

/** Follows a collection: a function, with `set` for a list that keeps itself. */
export interface Follow<P, N> {
  /** Reports changes until the function that it returns is called, through outages and sign-ins. */
  <K extends FieldName<P, N> = never>(
    options: FollowOptions<P, N, K>,
    listener: (event: FollowEvent<Shown<P, N, K, never>>) => void,
  ): () => void;
  /** Shows the documents that match whenever they have changed, sorted as a list. */
  set<K extends FieldName<P, N> = never>(
    options: Omit<FollowOptions<P, N, K>, 'since'> & {
      sort?: Sort<Part<P, N, 'Fields'>> | readonly Sort<Part<P, N, 'Fields'>>[];
      onError?: (error: ApiError) => void;
    },
    show: (documents: Shown<P, N, K, never>[]) => void,
  ): () => void;
}

type Listener = (event: FollowEvent<never>) => void;

interface AnyFollowOptions {
  filter?: object;
  fields?: readonly string[];
  since?: string;
}

interface Follower {
  subscription: Subscription;
  listener: Listener;
}

/** All followers of a page. */
export interface Followers {
  follow(collection: string): Follow<never, never>;
  /** Another user sees other documents: everybody starts over. */
  startOver(): void;
}

export function openFollowers(connection: Connection, isShared: boolean): Followers {
  const followers = new Map<string, Follower>();
  const own = (): Subscription[] => [...followers.values()].map(({ subscription }) => subscription);
  const news = openNews(connection);
  const tabs = openTabs({
    name: connection.name,
    isShared,
    own,
    lead: news.read,
    take,
    revive: (error) => new ApiError((error as Error).message, error as Failure),
  });

  function take({ id, cursor, event }: News): void {
    const follower = followers.get(id);
    if (!follower) return;
    if (event?.type === 'reset') delete follower.subscription.since;
    if (cursor !== undefined) follower.subscription.since = cursor;
    if (event?.type === 'error') followers.delete(id);
    if (event) tellListener(follower.listener, event as never);
  }

  const begin = (collection: string, { filter, fields, since }: AnyFollowOptions, listener: Listener): (() => void) => {
    const follower: Follower = {
      subscription: {
        id: randomKey(),
        collection,
        filter: buildQuery(filter, {}).toString(),
        ...(fields && { fields }),
        ...(since !== undefined && { since }),
      },
      listener,
    };
    followers.set(follower.subscription.id, follower);
    tabs.want(own());
    return () => {
      if (followers.delete(follower.subscription.id)) tabs.want(own());
    };
  };

  return {
    follow(collection) {
      const follow = (options: AnyFollowOptions, listener: Listener): (() => void) =>
        begin(collection, options, listener);
      follow.set = (
        {
          sort = '-createdAt',
          onError,
          ...options
        }: AnyFollowOptions & { sort?: string; onError?: (error: ApiError) => void },
        show: (documents: never[]) => void,
      ) => {
        const by = typeof sort === 'string' ? [sort] : sort;
        const keep = keepSet(by, show);
        return begin(collection, withSorted(options, by), (event) =>
          event.type === 'error' ? onError?.(event.error) : keep(event),
        );
      };
      // One implementation stands for the changes of every collection's type.
      return follow as unknown as Follow<never, never>;
    },
    startOver() {
      for (const follower of [...followers.values()]) {
        followers.delete(follower.subscription.id);
        const { since: _since, ...subscription } = follower.subscription;
        // Under another id: what is still under way for the user before is for nobody.
        follower.subscription = { ...subscription, id: randomKey() };
        followers.set(follower.subscription.id, follower);
        tellListener(follower.listener, { type: 'reset' });
      }
      if (followers.size > 0) tabs.want(own());
    },
  };
}
