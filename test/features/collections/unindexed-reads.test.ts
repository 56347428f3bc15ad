import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/features/collections/collection.js';
import { collectionStore } from '../../../src/features/collections/collection-store.js';
import { editCollection } from '../../../src/features/collections/edit-collection.js';
import { openEngine, type Engine } from '../../../src/engine/index.js';
import { SlowReads } from '../../../src/platform/database/slow-reads.js';
import { suggestedIndexes, suggestIndex } from '../../../src/features/collections/indexes/unindexed-reads.js';
import { buildCollection, buildProject, placeDocuments, type TestProject } from '../../helpers/build-project.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp({ constants: { readerThreads: 1 } });
const owner = await buildProject(test.app);
const posts = await buildCollection(test.app, owner.project, { name: 'posts', indexes: ['views'] });
const documents = Array.from({ length: 10_050 }, (_, n) => ({ status: 'live', views: n, kind: n % 50 }));
await placeDocuments(test.app, posts, documents);

const get = (query: string) =>
  request(test.server).get(`/api/data/posts?${query}`).set('x-api-key', owner.secret).expect(200);

async function told(): Promise<{ suggested: string[]; counts: Record<string, number> }> {
  await test.app.backgroundTasks.idle();
  const stored = (await collectionStore(test.app).findOne({ _id: posts._id })) as Collection;
  return { suggested: suggestedIndexes(stored), counts: test.app.metrics.totals().events };
}

describe('a read that looks at more than 10,000 documents', () => {
  it('is counted each time, and suggests its index once for each shape', async () => {
    for (const status of ['gone', 'missing', 'neither']) await get(`status=${status}`);
    const { suggested, counts } = await told();
    expect(counts['long_reads find']).toBe(3);
    expect(suggested).toEqual(['status']);
    const stored = (await collectionStore(test.app).findOne({ _id: posts._id })) as Collection;
    expect(stored.unindexed).toHaveLength(1);
    expect(JSON.stringify(stored.unindexed)).not.toMatch(/gone|missing|neither/);
    const reply = await request(test.server).get('/api/data/posts?limit=1').set('x-api-key', owner.secret);
    expect(JSON.stringify(reply.body)).not.toContain('unindexed');
  });

  it('is told of when it is a sort, a count or an aggregation, wherever it runs', async () => {
    await get('sort=-kind&limit=5');
    await get('kind=1&limit=5');
    await request(test.server)
      .post('/api/data/posts/aggregate')
      .set('x-api-key', owner.secret)
      .send({ pipeline: [{ $match: { kind: { $gt: 100 } } }, { $count: 'n' }] })
      .expect(200);
    const { suggested, counts } = await told();
    expect(counts['long_reads count']).toBeGreaterThan(0);
    expect(counts['long_reads aggregate']).toBeGreaterThan(0);
    expect(suggested).toEqual(expect.arrayContaining(['-kind', 'kind']));
  });

  it('is no more when the index is there', async () => {
    await editCollection(test.app, owner.project._id, 'posts', { indexes: ['views', 'status'] });
    const before = await told();
    expect(before.suggested).not.toContain('status');
    await get('status=gone');
    await get('views_gt=10000');
    await get('limit=20');
    expect((await told()).counts).toEqual(before.counts);
  });
});

describe('the same on a MongoDB, whose replies do not say what it looked at', () => {
  const data = openTempDir();
  const { leastMs } = SlowReads;
  let engine: Engine;
  let wired: TestApp;
  let project: TestProject;
  let articles: Collection;

  beforeAll(async () => {
    engine = openEngine({ dataDir: (await data).path, durability: 'relaxed' });
    const { uri } = await engine.listen('127.0.0.1:0');
    wired = await openTestApp({
      settings: { MONGODB_URI: uri, BSVC_SECRET_KEY: 'a-master-key-for-tests-only-0123456789' },
    });
    project = await buildProject(wired.app);
    articles = await buildCollection(wired.app, project.project, { name: 'articles', indexes: ['views'] });
    await placeDocuments(
      wired.app,
      articles,
      Array.from({ length: 10_050 }, (_, n) => ({ status: 'live', views: n })),
    );
    // Here 10,000 documents take no longer than a few do elsewhere.
    SlowReads.leastMs = 0;
  });
  afterAll(async () => {
    SlowReads.leastMs = leastMs;
    await wired.close();
    await engine.close();
    await (await data).remove();
  });

  const list = (query: string) =>
    request(wired.server).get(`/api/data/articles?${query}`).set('x-api-key', project.secret).expect(200);
  const explained = async (): Promise<number> => {
    const { metrics } = await engine.db('admin').command({ serverStatus: 1 });
    return (metrics as { commands: Record<string, { total: number } | undefined> }).commands['explain']?.total ?? 0;
  };
  const events = () => wired.app.metrics.totals().events;
  const until = (name: string, count: number) => expect.poll(() => events()[`long_reads ${name}`] ?? 0).toBe(count);

  it('is told from the plan, which is asked for once for each shape', async () => {
    await list('status=gone');
    await until('find', 1);
    const asked = await explained();
    await list('status=missing');
    await until('find', 2);
    expect(await explained()).toBe(asked);
    await list('status=live&limit=5');
    await until('count', 1);
    expect(await explained()).toBe(asked + 1);
    await wired.app.backgroundTasks.idle();
    const stored = (await collectionStore(wired.app).findOne({ _id: articles._id })) as Collection;
    expect(suggestedIndexes(stored)).toEqual(['status']);
    expect(JSON.stringify(stored.unindexed)).not.toMatch(/gone|missing|live/);
  });

  it('is told of a sort and of an aggregation, not of what an index answers or what stops early', async () => {
    const { 'long_reads find': finds = 0 } = events();
    await list('views=7');
    await list('views_gte=10049');
    await list('limit=20');
    await list('sort=-status&limit=5');
    await until('find', finds + 1);
    const pipeline = [{ $match: { status: 'live' } }, { $group: { _id: '$status' } }];
    const aggregate = () =>
      request(wired.server)
        .post('/api/data/articles/aggregate')
        .set('x-api-key', project.secret)
        .send({ pipeline })
        .expect(200);
    await aggregate();
    await until('aggregate', 1);
    expect(events()['long_reads find']).toBe(finds + 1);
  });

  it('costs nothing when it is quick', async () => {
    SlowReads.leastMs = 60_000;
    const asked = await explained();
    await list('title=none');
    await wired.app.backgroundTasks.idle();
    expect(await explained()).toBe(asked);
  });
});

describe('the index that serves a read', () => {
  const plain = { mode: 'flexible', fields: [], indexes: ['taken'], rls: null } as const;
  const newest = [
    { path: 'createdAt', descending: true },
    { path: '_id', descending: true },
  ];
  const condition = (text: string) => ({ path: text.split(' ')[0]!, op: text.split(' ')[1]! });

  it.each<[string, string[], object[], string | null]>([
    ['of a wanted value in the default order is that field', ['a eq', 'isDeleted eq'], newest, 'a'],
    ['of two wanted values has the order behind them', ['a eq', 'b in'], newest, 'a,b,-createdAt'],
    ['of a wanted value and a sort has both', ['a eq'], [{ path: 'b', descending: true }], 'a,-b'],
    ['of a range is that field', ['a gte', 'a lt'], newest, 'a'],
    ['of a wanted value and a range without an order has both', ['a eq', 'b gt'], [], 'a,b'],
    ['of a place is one of places', ['at within', 'a eq'], [], 'at:2dsphere'],
    ['leaves out the owner, whose index is there', ['userId eq', 'a eq'], newest, 'a'],
    ['is none where it is there', ['taken eq'], newest, null],
    ['is none for what no index serves', ['a exists'], newest, null],
    ['is none over a field that cannot have one', ['__proto__ eq'], newest, null],
  ])('%s', (_, conditions, sort, index) => {
    const read = { conditions: conditions.map(condition), sort: sort as { path: string; descending: boolean }[] };
    const rls = { mode: 'private', ownerField: 'userId' } as const;
    expect(suggestIndex({ ...plain, fields: [], indexes: [...plain.indexes], rls }, read)).toBe(index);
  });
});
