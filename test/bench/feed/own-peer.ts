import { ObjectId } from 'bson';
import { changesRequest } from './clients.js';
import { call, collect, type Peer } from './peer.js';
import { withFeedService } from './service.js';

/** Runs `work` with a service of ours in which each item is its owner's. */
export function withOwnPeer<T>(streams: number, users: number, work: (peer: Peer) => Promise<T>): Promise<T> {
  const userIds = Array.from({ length: users }, () => new ObjectId().toHexString());
  return withFeedService(
    streams,
    async ({ secret, publishable, tokens, start }) => {
      const service = await start();
      const { url } = service.ready;
      const items = `${url}/api/data/items`;
      const asOperator = { 'x-api-key': secret };
      return work({
        url,
        pid: service.process.pid!,
        opens: (user) => ({
          request: changesRequest(publishable, 'state=open', [`Authorization: Bearer ${tokens[user]!}`]),
          ready: 'event: ready',
        }),
        async create(user, state) {
          const body = { userId: userIds[user], state, text: 'a message of some words' };
          return (await call<{ _id: string }>(items, 'POST', asOperator, body))._id;
        },
        update: (id, state) => call(`${items}/${id}`, 'PATCH', asOperator, { state }),
        remove: (id) => call(`${items}/${id}?permanent=true`, 'DELETE', asOperator),
        async listen(user, { onlyOpen, since = 'now' }) {
          const query = `${onlyOpen ? 'state=open&' : ''}since=${encodeURIComponent(since)}`;
          const headers = { 'x-api-key': publishable, authorization: `Bearer ${tokens[user]!}` };
          const { text, close } = await collect(`${items}/changes?${query}`, headers, 'event: ready');
          return {
            text,
            async close() {
              await close();
              return [...text().matchAll(/"cursor":"([^"]+)"/g)].at(-1)?.[1];
            },
          };
        },
      });
    },
    { rls: { mode: 'private', ownerField: 'userId' }, userIds },
  );
}
