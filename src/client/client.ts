import { ApiError } from './api-error.js';
import type { CoreCollection } from './collection.js';
import { randomKey } from './connection.js';
import { openClient, type ClientOptions, type CoreClient } from './core.js';
import { inOrder } from './document-order.js';
import { openFollowers, type Follow } from './follow.js';
import type { CollectionName, ProjectTypes, UntypedProject } from './project.js';
import { toPlain } from './query.js';

export { ApiError } from './api-error.js';

/** The documents of a collection, and how to follow them. */
export interface Collection<P, N extends CollectionName<P>> extends CoreCollection<P, N> {
  /** Follows the documents that match, as they are and then as they change. */
  readonly follow: Follow<P, N>;
}

/** A call of own code at a moment: an address, or a handler of a file (`orders.mjs#remind`). */
export interface PlannedCall {
  url?: string;
  run?: string;
  body?: unknown;
  /** A call with the same key takes its place. */
  key?: string;
}

/** A client of one project. */
export interface Client<P> extends Omit<CoreClient<P>, 'collection'> {
  collection<N extends CollectionName<P>>(name: N): Collection<P, N>;
  /** Plans one call of own code, with the secret key; answers its id. */
  schedule(at: Date | string, call: PlannedCall): Promise<{ id: string }>;
}

export interface FullClientOptions extends ClientOptions {
  /** A local database, of `openOfflineStore`: reads and writes work without a network. */
  offline?: { readonly open: (client: never, tools: never) => unknown };
}

/** A client of one project; `bsvc generate types` writes the type argument. */
export function createClient<P extends ProjectTypes<P> = UntypedProject>(options: FullClientOptions): Client<P> {
  const { client, connection, isShared } = openClient<P>(options);
  const isSession = connection.tokens?.end !== undefined;
  const followers = openFollowers(connection, isShared, isSession ? () => client.auth.user !== null : undefined);
  const idOf = (user: unknown): unknown => (user as { _id?: string } | null)?._id;
  let seen = idOf(client.auth.user);
  client.auth.onChange((user) => {
    if (idOf(user) === seen) return;
    seen = idOf(user);
    followers.startOver();
  });
  const made: Client<P> = {
    ...client,
    collection: (name) => ({ ...client.collection(name), follow: followers.follow(name) as never }),
    async schedule(at, call) {
      const body = { at, ...call };
      return (await connection.send<{ data: { id: string } }>({ method: 'POST', path: '/schedules', body })).data;
    },
  };
  const tools = { ApiError, connection, inOrder, randomKey, toPlain };
  return (options.offline?.open(made as never, tools as never) ?? made) as Client<P>;
}
