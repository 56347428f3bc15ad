import { ObjectId } from 'bson';
import { cpuSeconds, memoryMib, threadMicros } from '../process-cost.js';
import { changesRequest, startClients } from './clients.js';
import { rest } from './idle-streams.js';
import { withFeedService } from './service.js';

/** Each is a group of followers: nobody else is shown the same. */
const USERS = 1_000;
const CHANGES = 100;
const FANOUTS = 5;
const JOINS = 40;
const CARDS_OF_JOINED = 3;

export interface RuledFigures {
  users: number;
  openedMicros: number;
  kibEach: number;
  /** Processor time of the service for a write and what it tells one user's streams. */
  changeMicros: number;
  /** A change that each stream is told; the owner of a document is one, so not under row-level security. */
  shared: { ms: number; micros: number };
  /** A membership, until its user's streams have what it lets them see. */
  joining: { ms: number; micros: number };
}

const NONE = { ms: 0, micros: 0 };

/** What streams of many users cost, of one collection under row-level security or under a rule with a set. */
export function measureRuledFollowers(streams: number, by: 'owner' | 'set'): Promise<RuledFigures> {
  const userIds = Array.from({ length: USERS }, () => new ObjectId().toHexString());
  const access =
    by === 'owner'
      ? { rls: { mode: 'private' as const, ownerField: 'owner' } }
      : {
          rules: { read: 'doc.board in members[user = user.id].board' },
          fields: [{ name: 'board', type: 'String' as const }],
        };
  return withFeedService(
    streams,
    async ({ secret, publishable, tokens, env, start }) => {
      env.BSVC_RATE_LIMIT = 'off';
      const service = await start();
      const pid = service.process.pid!;
      const { url } = service.ready;
      const clients = startClients();
      const headers = { 'x-api-key': secret, 'content-type': 'application/json' };
      const insert = async (collection: string, body: object): Promise<void> => {
        const answer = await fetch(`${url}/api/data/${collection}`, {
          method: 'POST',
          headers,
          body: JSON.stringify(body),
        });
        if (answer.status !== 201) throw new Error(`${collection}: ${answer.status} ${await answer.text()}`);
        await answer.arrayBuffer();
      };
      const each = streams / USERS;
      /** Writes and waits until so many events have come. */
      const told = async (write: () => Promise<void>, events: number): Promise<number> => {
        const heard = clients.ask({ do: 'hear', changes: events, of: 'all' });
        await write();
        return (await heard).ms;
      };
      try {
        if (by === 'set') {
          for (const [n, user] of userIds.entries()) {
            await insert('members', { board: `b${n}`, user });
            await insert('members', { board: 'all', user });
          }
          for (let n = 0; n < CARDS_OF_JOINED; n++) await insert('items', { board: 'new' });
        }
        const item = (n: number): object => (by === 'set' ? { board: `b${n}` } : { owner: userIds[n] });
        for (let n = 0; n < CHANGES; n++) await insert('items', item(n));
        await rest(2_000);
        const baseMib = memoryMib(pid, 'RssAnon');
        const { user, system } = cpuSeconds(pid);
        const { hostname: host, port } = new URL(url);
        for (const token of tokens) {
          const request = changesRequest(publishable, '', [`authorization: Bearer ${token}`]);
          await clients.ask({ do: 'open', host, port: Number(port), request, count: each, atOnce: each });
        }
        const opened = cpuSeconds(pid);
        await rest(3_000);
        const kibEach = ((memoryMib(pid, 'RssAnon') - baseMib) * 1024) / streams;
        let before = threadMicros(pid);
        const spent = (count: number): number => {
          const now = threadMicros(pid);
          const micros = (now - before) / count;
          before = now;
          return micros;
        };
        for (let n = 0; n < CHANGES; n++) await told(() => insert('items', item(n)), each);
        const changeMicros = spent(CHANGES);
        const figures = {
          users: USERS,
          openedMicros: ((opened.user + opened.system - user - system) * 1e6) / streams,
          kibEach,
          changeMicros,
        };
        if (by === 'owner') return { ...figures, shared: NONE, joining: NONE };
        const fanouts: number[] = [];
        for (let n = 0; n < FANOUTS; n++) fanouts.push(await told(() => insert('items', { board: 'all' }), streams));
        const shared = { ms: median(fanouts), micros: spent(FANOUTS * streams) };
        const joins: number[] = [];
        for (const member of userIds.slice(0, JOINS)) {
          joins.push(await told(() => insert('members', { board: 'new', user: member }), each * CARDS_OF_JOINED));
        }
        return { ...figures, shared, joining: { ms: median(joins), micros: spent(JOINS) } };
      } finally {
        await clients.stop();
      }
    },
    { ...access, userIds },
  );
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
