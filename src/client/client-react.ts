import { useMemo, useSyncExternalStore } from 'react';
import type { ApiError } from './api-error.js';
import type { Client } from './client.js';
import type { FollowOptions } from './follow.js';
import type { CollectionName, FieldName, FilterOf, RefPath, Shown } from './project.js';

/** What a component shows of what it follows. */
export interface Followed<T> {
  /** Undefined until the first answer, and on a server. */
  data: T | undefined;
  /** Why nothing more comes. */
  error: ApiError | undefined;
}

/** The signed-in user; null when there is none, and on a server. Renders again when that changes. */
export function useUser<P>({ auth }: Client<P>): Client<P>['auth']['user'] {
  const subscribe = useMemo(() => (listener: () => void) => auth.onChange(() => listener()), [auth]);
  return useSyncExternalStore(subscribe, () => auth.user, noUser);
}
const noUser = (): null => null;

/** The documents that match, sorted and live. Options that say the same may be another object in each render. */
export function useFollow<
  P,
  N extends CollectionName<P>,
  K extends FieldName<P, N> = never,
  R extends RefPath<P, N> = never,
>(
  client: Client<P>,
  collection: N,
  options: Omit<FollowOptions<P, N, K, R>, 'since'> = {},
): Followed<Shown<P, N, K, R>[]> {
  const key = JSON.stringify([collection, options]);
  const store = useMemo(
    () =>
      openFollowed<Shown<P, N, K, R>[]>((show, onError) =>
        client.collection(collection).follow.set({ ...options, onError }, show),
      ),
    // The options themselves are others in each render.
    [client, key],
  );
  return useSyncExternalStore(store.subscribe, store.get, nothing);
}

/** A document by its id, live; null when there is none that the user may read. */
export function useDocument<P, N extends CollectionName<P>>(
  client: Client<P>,
  collection: N,
  id: string,
): Followed<Shown<P, N, never, never> | null> {
  const store = useMemo(() => {
    // Every collection has it, but not every type of one is written out.
    const filter = { _id: id } as unknown as FilterOf<P, N>;
    return openFollowed<Shown<P, N, never, never> | null>((show, onError) =>
      client.collection(collection).follow.set({ filter, onError }, ([document]) => show(document ?? null)),
    );
  }, [client, collection, id]);
  return useSyncExternalStore(store.subscribe, store.get, nothing);
}

const NOTHING = { data: undefined, error: undefined };
const nothing = (): typeof NOTHING => NOTHING;

/** What `begin` shows, kept between renders; followed as long as a component shows it. */
function openFollowed<T>(begin: (show: (data: T) => void, onError: (error: ApiError) => void) => () => void): {
  get: () => Followed<T>;
  subscribe: (listener: () => void) => () => void;
} {
  let followed: Followed<T> = NOTHING;
  return {
    get: () => followed,
    // Called for one component, and in development for two that show the same in turn.
    subscribe(listener) {
      const set = (next: Partial<Followed<T>>): void => {
        followed = { ...followed, ...next };
        listener();
      };
      return begin(
        (data) => set({ data }),
        (error) => set({ error }),
      );
    },
  };
}
