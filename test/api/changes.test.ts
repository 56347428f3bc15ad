import { ObjectId } from 'bson';
import supertest from 'supertest';
import { describe, expect, it, vi } from 'vitest';
import { type Collection, dropCollection, setChanges, setRls } from '../world/collections.js';
import { importDocuments, purgeTrash } from '../world/documents.js';
import { trimChangesJob } from '../world/jobs.js';
import { rotateKey } from '../world/projects.js';
import { CHANGE_LOG, hintOf, numberEntries, waitingEntry } from '../world/stored.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { eventually } from '../helpers/eventually.js';
import { openFollower, type FeedFollower } from '../helpers/feed-follower.js';
import { useTestApp } from '../helpers/use.js';

const USER = new ObjectId().toHexString();
const ANOTHER = new ObjectId().toHexString();
const FIELDS = [
  { name: 'title', type: 'String' as const },
  { name: 'n', type: 'Number' as const },
  { name: 'userId', type: 'String' as const },
];

let made = 0;

const test = await useTestApp();
const owner = await buildProject(test.app);

const secret = () => ({ 'x-api-key': owner.secret });
const signedIn = (userId: string) => ({
  'x-api-key': owner.publishable,
  authorization: `Bearer ${signAccessToken(test.app, owner.project, userId, 60_000)}`,
});

async function buildFollowed(rls: Collection['rls'] = null): Promise<Collection> {
  const collection = await buildCollection(test.app, owner.project, { name: `followed${++made}`, fields: FIELDS, rls });
  return setChanges(test.app, owner.project._id, collection.name, { on: true });
}

const PRIVATE = { mode: 'private' as const, ownerField: 'userId' };

const send = openDataClient(test, serverOf(owner));

async function insert(name: string, document: object): Promise<string> {
  const response = await send('post', name, document);
  expect(response.status).toBe(201);
  return (response.body as { _id: string })._id;
}

/** What is news to a follower since the last look: `id` or `id gone`. On an embedded database nothing else is told. */
async function news(follower: FeedFollower): Promise<string[]> {
  follower.told.length = 0;
  follower.news.length = 0;
  await follower.catchUp();
  if (test.app.db.kind === 'embedded') expect(follower.told).toEqual(follower.news);
  return follower.news.map(({ id, type }) => (type === 'gone' ? `${id} gone` : id));
}

/** A page of changes; or the code of a refusal. */
async function read(name: string, query: string) {
  const { body } = await supertest(test.server).get(`/api/data/${name}/changes?${query}`).set(secret());
  const { data, code } = body as { data: { items?: { id: string }[]; cursor?: string }; code?: string };
  return { ...data, code };
}

async function expectSame(follower: FeedFollower): Promise<void> {
  await follower.catchUp();
  expect(follower.known).toEqual(await follower.list());
}

describe('GET /api/data/:collection/changes', () => {
  it('tells of each change once, however many look for changes while they are made', async () => {
    const { name } = await buildFollowed();
    const read = async (since: string, limit = 1000) => {
      const response = await send('get', `${name}/changes?since=${since}&limit=${limit}`);
      return (response.body as { data: { items: { id: string }[]; cursor: string; more: boolean } }).data;
    };
    const { cursor: begin } = await read('now');
    const ids: string[] = [];
    const looks: Promise<unknown>[] = [];
    for (let n = 0; n < 12; n++) {
      ids.push(await insert(name, { n }));
      for (let reader = 0; reader < 6; reader++) looks.push(read(begin));
    }
    await Promise.all(looks);
    await test.app.backgroundTasks.idle();
    const told: string[] = [];
    for (let [since, more] = [begin, true]; more;) {
      const page = await read(since, 1);
      told.push(...page.items.map(({ id }) => id));
      [since, more] = [page.cursor, page.more];
    }
    expect(told).toEqual(ids);
  });

  it('are numbered without gaps, each once, however many readers of a MongoDB do so while others write', async () => {
    const collection = { _id: new ObjectId(), rls: null };
    const { _id: c } = collection;
    const log = test.app.db.collection<{ _id: string; c: ObjectId; n: number }>(CHANGE_LOG);
    const write = async (from: number): Promise<void> => {
      for (let n = from; n < from + 40; n++) {
        const entry = waitingEntry(collection, new Date(n % 7), { before: null, after: { _id: n } });
        await log.insertOne({ _id: `${c.toHexString()} ${n}`, ...entry } as never);
      }
    };
    const read = async (): Promise<void> => {
      for (let look = 0; look < 10; look++) await numberEntries(test.app, c);
    };
    await Promise.all([write(0), write(40), write(80), read(), read(), read(), read()]);
    await numberEntries(test.app, c);
    const entries = await log.find({ c }).sort({ n: 1 }).toArray();
    // The first one begins the log.
    expect(entries.map(({ n }) => n)).toEqual(Array.from({ length: 121 }, (_, n) => n));
    expect(await log.countDocuments({ waiting: c } as never)).toBe(0);
  });

  it('shows what is there, then what every kind of write makes of it', async () => {
    const { name, ...rest } = await buildFollowed();
    const first = await insert(name, { title: 'first' });
    const follower = openFollower(test, name, secret());
    expect(await news(follower)).toEqual([first]);
    expect(await news(follower)).toEqual([]);

    const second = await insert(name, { title: 'second' });
    expect(await news(follower)).toEqual([second]);
    await send('patch', `${name}/${first}`, { n: 1 });
    expect(await news(follower)).toEqual([first]);
    const bulk = await send('post', `${name}/bulk`, [{ n: 2 }, { n: 3 }]);
    const { ids } = (bulk.body as { data: { ids: string[] } }).data;
    expect((await news(follower)).sort()).toEqual([...ids].sort());
    await send('delete', `${name}/${first}`);
    expect(await news(follower)).toEqual([`${first} gone`]);
    await send('patch', `${name}/${first}/recover`);
    expect(await news(follower)).toEqual([first]);
    await send('delete', `${name}/${second}?permanent=true`);
    expect(await news(follower)).toEqual([`${second} gone`]);
    const imported = new ObjectId().toHexString();
    await importDocuments(test.app, { name, ...rest } as Collection, [{ _id: imported, title: 'imported' }]);
    expect(await news(follower)).toEqual([imported]);
    const trashed = { title: 'old', isDeleted: true, deletedAt: '2020-01-01T00:00:00.000Z' };
    await importDocuments(test.app, { name, ...rest } as Collection, [trashed]);
    expect(await news(follower)).toEqual([]);
    expect(await purgeTrash(test.app)).toBeGreaterThan(0);
    expect(await news(follower)).toEqual([]);
    await expectSame(follower);
  });

  it('pages through what is there and through what has changed, each page within its limit', async () => {
    const { name } = await buildFollowed();
    for (let n = 0; n < 7; n++) await insert(name, { n });
    const follower = openFollower(test, name, secret(), 'limit=3');
    for (const size of [3, 3, 1]) {
      follower.told.length = 0;
      expect(await follower.step()).toBe(size === 3);
      expect(follower.told).toHaveLength(size);
    }
    expect(follower.known.size).toBe(7);
    for (const id of follower.known.keys()) await send('put', `${name}/${id}`, { title: 'changed' });
    follower.told.length = 0;
    expect(await follower.step()).toBe(true);
    expect(follower.told).toHaveLength(3);
    await follower.catchUp();
    expect(new Set(follower.told.map(({ id }) => id)).size).toBe(7);
    expect([...follower.known.values()].every(({ title }) => title === 'changed')).toBe(true);
  });

  it('tells of documents that enter and leave a filter', async () => {
    const { name } = await buildFollowed();
    const id = await insert(name, { title: 'open' });
    const follower = openFollower(test, name, secret(), 'title=open');
    expect(await news(follower)).toEqual([id]);
    await send('patch', `${name}/${id}`, { title: 'done' });
    expect(await news(follower)).toEqual([`${id} gone`]);
    await send('patch', `${name}/${id}`, { title: 'open' });
    expect(await news(follower)).toEqual([id]);
  });

  it('tells of departures only those whose filter the document has met (embedded engine)', async () => {
    if (test.app.db.kind !== 'embedded') return;
    const { name } = await buildFollowed();
    const id = await insert(name, { title: 'done' });
    const follower = openFollower(test, name, secret(), 'title=open');
    expect(await news(follower)).toEqual([]);
    await send('patch', `${name}/${id}`, { n: 1 });
    await send('delete', `${name}/${id}?permanent=true`);
    expect(await news(follower)).toEqual([]);
  });

  it('never tells a user of another one’s documents, not even that they are gone', async () => {
    const { name } = await buildFollowed(PRIVATE);
    const mine = await insert(name, { title: 'mine', userId: USER });
    const theirs = await insert(name, { title: 'theirs', userId: ANOTHER });
    const follower = openFollower(test, name, signedIn(USER));
    expect(await news(follower)).toEqual([mine]);
    for (const id of [mine, theirs]) await send('patch', `${name}/${id}`, { n: 1 });
    expect(await news(follower)).toEqual([mine]);
    for (const id of [mine, theirs]) await send('delete', `${name}/${id}`);
    expect(await news(follower)).toEqual([`${mine} gone`]);
    const more = await insert(name, { title: 'theirs', userId: ANOTHER });
    await send('delete', `${name}/${more}?permanent=true`);
    expect(await news(follower)).toEqual([]);
  });

  it('shows the fields that are asked for and none that the service keeps for itself', async () => {
    const { name } = await buildFollowed();
    const id = await insert(name, { title: 'a', n: 1 });
    const some = await send('get', `${name}/changes?fields=title&meta=false`);
    expect((some.body as { data: { items: unknown[] } }).data.items).toEqual([
      { type: 'upsert', id, at: expect.any(String) as string, document: { _id: id, title: 'a' } },
    ]);
    const all = await send('get', `${name}/changes`);
    expect(all.text).not.toContain('_bsvc');
  });

  it('begins with what comes when it is asked for changes since now', async () => {
    const { name } = await buildFollowed();
    await insert(name, { title: 'before' });
    const follower = openFollower(test, name, secret(), 'since=now');
    await follower.step();
    expect(follower.told).toEqual([]);
    const rest = openFollower(test, name, secret());
    rest.cursor = follower.cursor;
    const id = await insert(name, { title: 'after' });
    expect(await news(rest)).toEqual([id]);
  });

  it('waits for the next change and answers as soon as there is one', async () => {
    const { name } = await buildFollowed();
    const follower = openFollower(test, name, secret());
    await follower.catchUp();
    const waiting = follower.step('&wait=25');
    const id = await insert(name, { title: 'news' });
    await waiting;
    expect(follower.told.map((item) => item.id)).toEqual([id]);
  });

  it('ends a waiting request whose key was revoked meanwhile', async () => {
    const another = await buildProject(test.app);
    await buildCollection(test.app, another.project, { name: 'things' });
    await setChanges(test.app, another.project._id, 'things', { on: true });
    const waiting = supertest(test.server)
      .get('/api/data/things/changes?wait=25')
      .set('x-api-key', another.secret)
      .then((response) => response);
    await rotateKey(test.app, another.project, 'secret', 0);
    expect((await waiting).status).toBe(401);
  });

  describe('cursors', () => {
    it('are refused when forged, or of another collection, filter or user', async () => {
      const { name } = await buildFollowed(PRIVATE);
      const other = await buildFollowed(PRIVATE);
      const follower = openFollower(test, name, signedIn(USER), 'title=open');
      await follower.catchUp();
      const cursor = follower.cursor!;
      const ask = async (at: string, headers: Record<string, string>, filter: string, since: string) => {
        const path = `/api/data/${at}/changes?${filter}&since=${encodeURIComponent(since)}`;
        const { status, body } = await supertest(test.server).get(path).set(headers);
        return `${status} ${(body as { code?: string }).code ?? ''}`;
      };
      expect(await ask(name, signedIn(USER), 'title=open', cursor)).toBe('200 ');
      expect(await ask(name, signedIn(ANOTHER), 'title=open', cursor)).toBe('400 INVALID_CURSOR');
      expect(await ask(name, secret(), 'title=open', cursor)).toBe('400 INVALID_CURSOR');
      expect(await ask(name, signedIn(USER), 'title=done', cursor)).toBe('400 INVALID_CURSOR');
      expect(await ask(name, signedIn(USER), '', cursor)).toBe('400 INVALID_CURSOR');
      expect(await ask(other.name, signedIn(USER), 'title=open', cursor)).toBe('400 INVALID_CURSOR');
      for (const forged of ['x', 'x.y', `${cursor}x`, `x${cursor}`, cursor.toUpperCase(), 'x'.repeat(5000), '.']) {
        expect(await ask(name, signedIn(USER), 'title=open', forged)).toBe('400 INVALID_CURSOR');
      }
    });

    it('are the same in whatever order a filter is written', async () => {
      const { name } = await buildFollowed();
      const parts = ['n_gte=1', 'title_in=a', 'title_in=b%2Cc', 'n_lt=9', 'limit=5', 'fields=title'];
      const orders = parts.map((_, at) => [...parts.slice(at), ...parts.slice(0, at)]);
      orders.push([...parts].reverse());
      const { cursor } = await read(name, parts.join('&'));
      for (const order of orders) {
        expect((await read(name, `${order.join('&')}&since=${cursor}`)).code, order.join('&')).toBeUndefined();
      }
    });

    it('outlive, also while somebody waits by them, what changes nothing that they hold', async () => {
      const { name, _id } = await buildFollowed();
      const { cursor } = await read(name, 'n=1');
      const wait = vi.spyOn(test.app.hints, 'wait');
      const looks = () => wait.mock.calls.filter(([topic]) => topic === hintOf(_id)).length;
      let isAnswered = false;
      const waiting = read(name, `n=1&wait=25&since=${cursor}`).finally(() => (isAnswered = true));
      await eventually('somebody waits', () => looks() > 0);
      await setChanges(test.app, owner.project._id, name, { keepMs: 86_400_000 });
      const before = looks();
      await eventually('they have seen it', () => isAnswered || looks() > before + 1);
      wait.mockRestore();
      const id = await insert(name, { n: 1 });
      expect((await waiting).items?.map((item) => item.id)).toEqual([id]);
    });

    it('expire when the rules change, when it is switched off and on, and when the collection is dropped', async () => {
      const { name } = await buildFollowed();
      const follower = openFollower(test, name, secret());
      const expireBy = async (change: () => Promise<unknown>): Promise<void> => {
        await follower.catchUp();
        const before = follower.restarts;
        await change();
        await follower.step();
        expect(follower.restarts).toBe(before + 1);
      };
      const projectId = owner.project._id;
      await expireBy(() => setRls(test.app, projectId, name, PRIVATE));
      await expireBy(async () => {
        await setChanges(test.app, projectId, name, { on: false });
        expect((await send('get', `${name}/changes`)).body).toMatchObject({ code: 'CHANGES_OFF' });
        await setChanges(test.app, projectId, name, { on: true });
      });
      await expireBy(async () => {
        await dropCollection(test.app, projectId, name);
        expect((await send('get', `${name}/changes`)).body).toMatchObject({ code: 'COLLECTION_NOT_FOUND' });
        await buildCollection(test.app, owner.project, { name, fields: FIELDS });
        await setChanges(test.app, projectId, name, { on: true });
      });
      await expectSame(follower);
    });

    it('expire when the log is trimmed beyond them, and not before', async () => {
      const { name } = await buildFollowed();
      const behind = openFollower(test, name, secret());
      await behind.catchUp();
      await insert(name, { n: 1 });
      const upToDate = openFollower(test, name, secret());
      await insert(name, { n: 2 });
      // On a MongoDB the writer and a reader may both put a change into the log: not behind this cursor.
      await test.app.backgroundTasks.idle();
      await upToDate.catchUp();
      await setChanges(test.app, owner.project._id, name, { keepMs: 1 });
      const context = { signal: new AbortController().signal, stopping: new AbortController().signal };
      await trimChangesJob.run(test.app, {}, context as never);
      expect(await news(upToDate)).toEqual([]);
      expect(upToDate.restarts).toBe(0);
      await expectSame(behind);
      expect(behind.restarts).toBe(1);
    });
  });

  it('refuses what has no meaning for changes, and names the parameter', async () => {
    const { name } = await buildFollowed();
    for (const query of [
      'page=1',
      'skip=1',
      'sort=n',
      'cursor=start',
      'count=true',
      'populate=n',
      'include_deleted=true',
    ]) {
      const { status, body } = await send('get', `${name}/changes?${query}`);
      expect(`${status} ${(body as { code: string }).code}`).toBe('400 INVALID_QUERY');
      expect((body as { message: string }).message).toContain(query.split('=')[0]);
    }
    for (const query of ['wait=26', 'wait=x', 'limit=0', 'unknown=1', 'since=now&since=now']) {
      expect((await send('get', `${name}/changes?${query}`)).status).toBe(400);
    }
  });

  it('shows users to the secret key alone, without what the service keeps of them', async () => {
    await setChanges(test.app, owner.project._id, 'users', { on: true });
    const follower = openFollower(test, 'users', secret());
    await follower.catchUp();
    const response = await supertest(test.server)
      .post('/api/userAuth/signup')
      .set('x-api-key', owner.publishable)
      .send({ email: 'ann@example.test', password: 'correct horse battery' });
    expect(response.status).toBe(201);
    await follower.catchUp();
    expect(follower.told).toHaveLength(1);
    expect(JSON.stringify(follower.told)).not.toMatch(/password|_bsvc|\$2[aby]\$/);
    const closed = await supertest(test.server).get('/api/data/users/changes').set('x-api-key', owner.publishable);
    expect(closed.body).toMatchObject({ code: 'USERS_BLOCKED' });
    const spelled = await supertest(test.server).get('/api/data/%55sers/changes').set(secret());
    expect(spelled.body).toMatchObject({ code: 'USERS_BLOCKED' });
  });
});
