import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'bson';
import supertest from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Collection, setChanges } from '../../world/collections.js';
import { importDocuments } from '../../world/documents.js';
import { signAccessToken } from '../../world/users.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { openFollower, type FeedFollower } from '../../helpers/feed-follower.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { eventually } from '../../helpers/eventually.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { openStreamFollower } from '../../helpers/stream-follower.js';

const SEED = openSeed('changes');
/** Each write and page costs more through the wire transport. */
const WRITES = process.env.BSVC_TEST_TRANSPORT === 'wire' ? 60 : 120;
const USERS = ['ann', 'bob'].map((name) => ({ name, id: new ObjectId().toHexString() }));
const STATES = ['open', 'late', 'done'];
const FILTERS = [
  '',
  'state=open',
  'state_in=open,late',
  'n_gte=10&n_lt=30',
  'state_ne=done&n_lt=25',
  'tag_exists=true',
  'note_regex=^a',
  'note_startswith=a',
  'meta.level=3',
];

interface Write {
  method: 'post' | 'patch' | 'delete';
  path: string;
  body?: object;
}

describe('followers of any filter and key', () => {
  let test: TestApp;
  let owner: TestProject;

  beforeAll(async () => {
    test = await openTestApp();
    owner = await buildProject(test.app);
  });
  afterAll(() => test.close());

  const secret = () => ({ 'x-api-key': owner.secret });
  const signedIn = (userId: string, ms = 600_000) => ({
    'x-api-key': owner.publishable,
    authorization: `Bearer ${signAccessToken(test.app, owner.project, userId, ms)}`,
  });

  async function build(mode: 'private' | 'public-read', called = `followed-${mode}`): Promise<Collection> {
    const { name } = await buildCollection(test.app, owner.project, {
      name: called,
      fields: [
        { name: 'state', type: 'String' },
        { name: 'n', type: 'Number' },
        { name: 'tag', type: 'String' },
        { name: 'note', type: 'String' },
        { name: 'meta', type: 'Object', fields: [{ name: 'level', type: 'Number' }] },
        { name: 'text', type: 'String' },
        { name: 'userId', type: 'String' },
      ],
      rls: { mode, ownerField: 'userId' },
      indexes: ['state'],
    });
    return setChanges(test.app, owner.project._id, name, { on: true });
  }

  function randomFields(random: Random): Record<string, unknown> {
    return {
      state: random.pick(STATES),
      n: random.below(40),
      note: random.pick(['apple', 'banana', 'Avocado']),
      meta: { level: random.below(5) },
      ...(random.chance(0.5) && { tag: 'x' }),
      ...(random.chance(0.2) && { text: 'long '.repeat(random.below(200)) }),
    };
  }

  function randomWrite(random: Random, ids: readonly string[]): Write {
    const id = random.pick(ids);
    const withOwner = (): object => ({ ...randomFields(random), userId: random.pick(USERS).id });
    return random.pick<() => Write>([
      () => ({ method: 'post', path: '', body: withOwner() }),
      () => ({ method: 'post', path: '/bulk', body: [withOwner(), withOwner(), withOwner()] }),
      () => ({ method: 'patch', path: `/${id}`, body: randomFields(random) }),
      () => ({ method: 'patch', path: `/${id}`, body: { tag: null, n: random.below(40) } }),
      () => ({ method: 'patch', path: `/${id}`, body: { 'meta.level': random.below(5) } }),
      () => ({ method: 'delete', path: `/${id}` }),
      () => ({ method: 'patch', path: `/${id}/recover` }),
      () => ({ method: 'delete', path: `/${id}?permanent=true` }),
    ])();
  }

  it.each(['private', 'public-read'] as const)(
    'end up with what a list shows, and are told nothing that it would not have shown (%s)',
    async (mode) => {
      const random = openRandom(SEED).fork(mode);
      const collection = await build(mode);
      const { name } = collection;
      const audiences = [
        { user: null, headers: secret() },
        ...USERS.map(({ id }) => ({ user: id, headers: signedIn(id) })),
      ];
      const followers = FILTERS.flatMap((filter) =>
        audiences.map(({ user, headers }) => ({
          user,
          filter,
          follower: openFollower(test, name, headers, filter),
        })),
      );
      const owners = new Map<string, string>();
      const learn = (document: Record<string, unknown>): void => {
        owners.set(document._id as string, document.userId as string);
      };
      const write = async ({ method, path, body }: Write): Promise<void> => {
        const request = supertest(test.server)[method](`/api/data/${name}${path}`).set(secret());
        const { status } = await (body ? request.send(body) : request);
        expect([200, 201, 404]).toContain(status);
      };
      const step = async (follower: FeedFollower): Promise<void> => {
        await follower.step(`&limit=${1 + random.below(6)}`);
      };
      // One for each user that meets every filter and stays: what is drawn may meet a filter never.
      const stays = { state: 'open', n: 15, tag: 'x', note: 'apple', meta: { level: 3 }, text: 'stays' };
      for (const { id } of USERS) await write({ method: 'post', path: '', body: { ...stays, userId: id } });
      for (let round = 0; round < WRITES; round++) {
        const all = await supertest(test.server).get(`/api/data/${name}?limit=1000&include_deleted=true`).set(secret());
        const { items } = (all.body as { data: { items: Record<string, unknown>[] } }).data;
        items.forEach(learn);
        const others = items.filter(({ text }) => text !== stays.text).map(({ _id }) => String(_id));
        const ids = others.length > 0 ? others : [new ObjectId().toHexString()];
        // Followers are away, and read in between, and while somebody writes.
        const writing = write(randomWrite(random, ids));
        if (random.chance(0.6)) await step(random.pick(followers).follower);
        await writing;
        if (random.chance(0.02)) {
          await importDocuments(test.app, collection, [{ ...randomFields(random), userId: random.pick(USERS).id }]);
        }
      }
      for (const { user, filter, follower } of followers) {
        await follower.catchUp();
        expect(follower.known, `${filter} as ${user}`).toEqual(await follower.list());
        expect(follower.restarts).toBe(0);
        if (mode !== 'private' || user === null) continue;
        for (const { type, id, document } of follower.told) {
          if (type === 'upsert') expect(document!.userId).toBe(user);
          else if (owners.has(id)) expect(owners.get(id)).toBe(user);
        }
      }
      expect(followers.filter(({ follower }) => follower.told.length === 0)).toEqual([]);
    },
  );

  it.each(['private', 'public-read'] as const)(
    'keep the same set by streams that are cut, not read, and end with their tokens (%s)',
    async (mode) => {
      const random = openRandom(SEED).fork(`streams ${mode}`);
      const { name } = await build(mode, `streamed-${mode}`);
      const audiences = [null, ...USERS.map(({ id }) => id)];
      const followers = FILTERS.filter((filter) => !filter.includes('_regex')).flatMap((filter) =>
        audiences.map((user) => ({ user, filter, follower: openStreamFollower(name, filter) })),
      );
      type Entry = (typeof followers)[number];
      const connect = async ({ user, follower }: Entry, ms = 600_000): Promise<void> => {
        const status = await follower.connect(test, user === null ? secret() : signedIn(user, ms));
        // A short token may have ended before it was read.
        expect(ms < 10_000 ? [200, 401] : [200]).toContain(status);
      };
      const owners = new Map<string, string>();
      for (let round = 0; round < WRITES; round++) {
        const all = await supertest(test.server).get(`/api/data/${name}?limit=1000&include_deleted=true`).set(secret());
        const { items } = (all.body as { data: { items: Record<string, unknown>[] } }).data;
        for (const { _id, userId } of items) owners.set(String(_id), String(userId));
        const ids = items.length > 0 ? items.map(({ _id }) => String(_id)) : [new ObjectId().toHexString()];
        const { method, path, body } = randomWrite(random, ids);
        const request = supertest(test.server)[method](`/api/data/${name}${path}`).set(secret());
        const writing = body ? request.send(body) : request;
        const entry = random.pick(followers);
        // Its token may end while it follows.
        if (random.chance(0.6)) await connect(entry, random.chance(0.2) ? 1_500 : 600_000);
        else if (random.chance(0.3)) await entry.follower.disconnect();
        else if (random.chance(0.5)) entry.follower.pause();
        else entry.follower.resume();
        expect([200, 201, 404]).toContain((await writing).status);
      }
      for (const entry of followers) {
        const { user, filter, follower } = entry;
        follower.resume();
        const headers = user === null ? secret() : signedIn(user);
        const list = await openFollower(test, name, headers, filter).list();
        const isSame = async (): Promise<boolean> => {
          if (!follower.isOpen()) await connect(entry);
          return isDeepStrictEqual(follower.known, list);
        };
        await eventually(`${filter} as ${user} shows what the list shows`, isSame);
        expect(follower.restarts).toBe(0);
        expect(follower.ends.filter((code) => code !== 'TOKEN_EXPIRED')).toEqual([]);
        if (mode !== 'private' || user === null) continue;
        for (const { type, id, document } of follower.told) {
          if (type === 'upsert') expect(document!.userId).toBe(user);
          else if (owners.has(id)) expect(owners.get(id)).toBe(user);
        }
      }
      for (const { follower } of followers) await follower.disconnect();
    },
  );
});
