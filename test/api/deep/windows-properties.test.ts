import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'bson';
import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, setChanges } from '../../world/collections.js';
import { signAccessToken } from '../../world/users.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { buildMemberWorld } from '../../helpers/member-world.js';
import { openStreamClient, type StreamClient } from '../../helpers/event-stream.js';
import { measureHeldMemory } from '../../helpers/held-memory.js';
import { eventually } from '../../helpers/eventually.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { openStreamFollower, type StreamFollower } from '../../helpers/stream-follower.js';
import { useTestApp } from '../../helpers/use.js';

const SEED = openSeed('windows');
/** Each write costs more through the wire transport. */
const WRITES = process.env.BSVC_TEST_TRANSPORT === 'wire' ? 60 : 150;
const USERS = ['ann', 'bob'].map(() => new ObjectId().toHexString());
const FILTERS = ['', 'state=open&', 'state_in=open,late&', 'n_gte=2&', 'tag_exists=true&'];
const SORTS = [
  '-createdAt',
  'n',
  '-n,state',
  'state,-n',
  'name',
  '-tags',
  'tags',
  'meta.level,-_id',
  '_id',
  '-text',
  'updatedAt',
];
const LIMITS = [1, 3, 7];

type Headers = Record<string, string>;

interface Entry {
  query: string;
  headers: Headers;
  follower: StreamFollower;
}

const test = await useTestApp();
const owner = await buildProject(test.app);

const secret = (): Headers => ({ 'x-api-key': owner.secret });
const signedIn = (userId: string): Headers => ({
  'x-api-key': owner.publishable,
  authorization: `Bearer ${signAccessToken(test.app, owner.project, userId, 600_000)}`,
});

async function build(mode: 'private' | 'public-read'): Promise<Collection> {
  const { name } = await buildCollection(test.app, owner.project, {
    name: `windows-${mode}`,
    fields: [
      { name: 'state', type: 'String' },
      { name: 'n', type: 'Number' },
      { name: 'name', type: 'String', nocase: true },
      { name: 'tag', type: 'String' },
      { name: 'tags', type: 'Array', items: { type: 'String' } },
      { name: 'meta', type: 'Object', fields: [{ name: 'level', type: 'Number' }] },
      { name: 'text', type: 'String' },
      { name: 'userId', type: 'String' },
    ],
    rls: { mode, ownerField: 'userId' },
    indexes: ['state,-n', 'n'],
  });
  return setChanges(test.app, owner.project._id, name, { on: true });
}

/** Few values, so that many are equal, and none at times. */
function randomFields(random: Random): Record<string, unknown> {
  return {
    state: random.pick(['open', 'late', 'done']),
    name: random.pick(['Ada', 'ada', 'BOB', 'bob', 'Zoë']),
    ...(random.chance(0.8) && { n: random.pick([-0, 0, 1, 1.5, 2, 3, 1e15]) }),
    ...(random.chance(0.5) && { tag: 'x' }),
    ...(random.chance(0.7) && { tags: random.pick([[], ['a'], ['b', 'a'], ['c'], ['a', 'd']]) }),
    ...(random.chance(0.7) && { meta: { level: random.below(3) } }),
    ...(random.chance(0.5) && { text: 'long '.repeat(random.pick([1, 60, 100])) + random.pick(['a', 'b']) }),
  };
}

async function listOf(name: string, { query, headers }: Pick<Entry, 'query' | 'headers'>) {
  const response = await supertest(test.server).get(`/api/data/${name}?${query}`).set(headers);
  expect(response.status).toBe(200);
  const { items } = (response.body as { data: { items: { _id: string }[] } }).data;
  return new Map(items.map((item) => [item._id, item]));
}

async function randomWrite(random: Random, name: string, items: readonly Record<string, unknown>[]): Promise<void> {
  const id = items.length > 0 ? String(random.pick(items)._id) : new ObjectId().toHexString();
  const send = async (method: 'post' | 'patch' | 'delete', path: string, body: object = {}): Promise<void> => {
    const { status } = await supertest(test.server)[method](`/api/data/${name}${path}`).set(secret()).send(body);
    expect([200, 201, 404, 409]).toContain(status);
  };
  const withOwner = (): object => ({ ...randomFields(random), userId: random.pick(USERS) });
  await random.pick([
    () => send('post', '', withOwner()),
    () => send('post', '', withOwner()),
    () => send('post', '/bulk', [withOwner(), withOwner(), withOwner()]),
    () => send('patch', `/${id}`, randomFields(random)),
    () => send('patch', `/${id}`, randomFields(random)),
    () => send('patch', `/${id}`, { n: null, tags: null, 'meta.level': random.below(3) }),
    () => send('delete', `/${id}`),
    () => send('delete', `/${id}`),
    () => send('patch', `/${id}/recover`),
    () => send('delete', `/${id}?permanent=true`),
    () => {
      const state = random.pick(['open', 'late']);
      const confirm = items.filter((item) => item.state === state && item.isDeleted === false).length;
      return send('patch', `?state=${state}&confirm=${confirm}`, { n: random.below(4) });
    },
  ])();
}

/** Everybody shows, once it is quiet, what a list of the same query shows. */
async function expectLists(name: string, entries: readonly Entry[]): Promise<void> {
  for (const entry of entries) {
    const { query, headers, follower } = entry;
    follower.resume();
    const isSame = async (): Promise<boolean> => {
      if (!follower.isOpen()) await follower.connect(test, headers);
      // Over a MongoDB a list may use a membership set that is a second old.
      const list = await listOf(name, entry);
      return isDeepStrictEqual([...follower.known.entries()].sort(), [...list.entries()].sort());
    };
    await eventually(`${query} shows what the list shows`, isSame);
  }
}

/** Others connect, leave and stop reading while somebody writes. */
async function disturb(random: Random, { headers, follower }: Entry): Promise<void> {
  if (random.chance(0.3)) expect(await follower.connect(test, headers)).toBe(200);
  else if (random.chance(0.1)) await follower.disconnect();
  else if (random.chance(0.3)) follower.pause();
  else follower.resume();
}

describe('followers of windows', () => {
  it.each(['private', 'public-read'] as const)(
    'show what a list of the same sort and limit shows, and are told nothing of others (%s)',
    async (mode) => {
      const random = openRandom(SEED).fork(mode);
      const { name } = await build(mode);
      const audiences = [null, ...USERS];
      const entries = SORTS.flatMap((sort) =>
        audiences.map((user) => ({
          user,
          query: `${random.pick(FILTERS)}sort=${sort}&limit=${random.pick(LIMITS)}`,
          headers: user === null ? secret() : signedIn(user),
        })),
      ).map((entry) => ({ ...entry, follower: openStreamFollower(name, entry.query) }));
      for (const { follower, headers } of entries) expect(await follower.connect(test, headers)).toBe(200);
      const owners = new Map<string, Set<unknown>>();
      for (let round = 0; round < WRITES; round++) {
        const all = await supertest(test.server).get(`/api/data/${name}?limit=1000&include_deleted=true`).set(secret());
        const { items } = (all.body as { data: { items: Record<string, unknown>[] } }).data;
        for (const { _id, userId } of items) {
          owners.set(String(_id), (owners.get(String(_id)) ?? new Set()).add(userId));
        }
        const writing = randomWrite(random, name, items);
        await disturb(random, random.pick(entries));
        await writing;
        if (round % 50 === 49) await expectLists(name, entries);
      }
      await expectLists(name, entries);
      for (const { user, follower } of entries) {
        expect(follower.ends).toEqual([]);
        if (mode !== 'private' || user === null) continue;
        for (const { type, id, document } of follower.told) {
          if (type === 'upsert') expect(document!.userId).toBe(user);
          else if (owners.has(id)) expect(owners.get(id)).toContain(user);
        }
      }
      // Some filters and owners may have no documents all the time.
      expect(entries.filter(({ follower }) => follower.told.length > 0).length).toBeGreaterThan(entries.length / 2);
      for (const { follower } of entries) await follower.disconnect();
    },
  );

  it('are held once for all who follow the same', async () => {
    const fields = [{ name: 'title', type: 'String' as const }];
    const { name } = await buildCollection(test.app, owner.project, { name: 'held', fields });
    await setChanges(test.app, owner.project._id, name, { on: true });
    const titles = Array.from({ length: 300 }, (_, n) => ({ title: `${n} `.padEnd(250, 'long ') }));
    for (const part of [0, 100, 200]) {
      const bulk = supertest(test.server).post(`/api/data/${name}/bulk`).set(secret());
      expect((await bulk.send(titles.slice(part, part + 100))).status).toBe(201);
    }
    const window = { collection: name, limit: 300, sort: 'title', since: 'now' };
    const clients: StreamClient[] = [];
    const open = async (subscriptions: object[]): Promise<void> => {
      const client = await openStreamClient(test, { headers: secret(), body: { subscriptions } });
      clients.push(client);
      for (const n of subscriptions.keys()) await client.until(({ event, data }) => event === 'ready' && data.n === n);
    };
    await open([window]);
    const before = measureHeldMemory();
    for (let n = 0; n < 10; n++) await open(Array.from({ length: 50 }, () => window));
    const each = (measureHeldMemory() - before) / 500;
    for (const client of clients) client.close();
    // 300 titles alone would be 75,000 bytes; a follower with its client in this process is a few thousand.
    expect(each).toBeLessThan(30_000);
  });

  it('show what their user may list by a set that changes too', async () => {
    const random = openRandom(SEED).fork('sets');
    const world = await buildMemberWorld(test);
    const { name } = world.cards;
    const entries = world.userIds.flatMap((userId) =>
      ['sort=-n&limit=2', 'sort=board,n&limit=5', 'visibility=team&sort=visibility&limit=3'].map((query) => ({
        query,
        headers: world.headers(userId),
        follower: openStreamFollower(name, query),
      })),
    );
    for (const { follower, headers } of entries) expect(await follower.connect(test, headers)).toBe(200);
    for (let round = 0; round < WRITES; round++) {
      await world.change(random);
      if (random.chance(0.2)) await disturb(random, random.pick(entries));
      if (round % 50 === 49) await expectLists(name, entries);
    }
    await expectLists(name, entries);
    // A user may be a member of boards without cards all the time.
    expect(entries.filter(({ follower }) => follower.told.length > 0).length).toBeGreaterThan(entries.length / 2);
    for (const { follower } of entries) await follower.disconnect();
  });
});
