import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection } from '../../src/features/collections/collection.js';
import { insertHiddenRecords } from '../../src/features/documents/store/document-store.js';
import { seriesStore } from '../../src/features/collections/indexes/insert-series.js';
import { abandonBatch, openBatch, showBatch } from '../../src/features/documents/bulk/hidden-batch.js';
import { batchStore } from '../../src/features/documents/bulk/insert-batch.js';
import { insertDocuments } from '../../src/features/documents/bulk/insert-documents.js';
import { readNewDocument } from '../../src/features/documents/write/new-document.js';
import { settleBatches } from '../../src/features/documents/bulk/settle-batches.js';
import { buildCollection, buildProject, storedDocuments, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

let test: TestApp;
let owner: TestProject;
let items: Collection;
const clock = createFakeClock();

beforeAll(async () => {
  test = await openTestApp({ clock });
  owner = await buildProject(test.app);
  items = await buildCollection(test.app, owner.project, {
    name: 'items',
    fields: [
      { name: 'name', type: 'String', required: true },
      { name: 'code', type: 'String', unique: true },
    ],
  });
});
afterAll(() => test.close());

const bulk = (body: unknown) =>
  request(test.server)
    .post('/api/data/items/bulk')
    .set('x-api-key', owner.secret)
    .send(body as object);
/** How many batches are left hidden. */
const hidden = () => seriesStore(test.app).countDocuments({ 'hidden.0': { $exists: true } });
const stored = () => storedDocuments(test.app, items).countDocuments({});

describe('POST /api/data/:collectionName/bulk', () => {
  it('stores all documents and answers their ids in order', async () => {
    const reply = await bulk([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    expect([reply.status, reply.body]).toEqual([
      201,
      {
        success: true,
        data: { insertedCount: 3, ids: expect.any(Array) },
        message: 'Inserted 3',
      },
    ]);
    const { ids } = reply.body.data as { ids: string[] };
    const names: string[] = [];
    for (const id of ids) {
      const read = await request(test.server).get(`/api/data/items/${id}`).set('x-api-key', owner.secret).expect(200);
      expect(read.body).toMatchObject({ isDeleted: false, deletedAt: null });
      names.push(read.body.name as string);
    }
    expect(names).toEqual(['a', 'b', 'c']);
    expect(await hidden()).toBe(0);
  });

  it.each([[[]], [{}], [{ name: 'a' }], [Array.from({ length: 101 }, () => ({ name: 'a' }))]])(
    'refuses a body that is not an array of 1 to 100',
    async (body) => {
      const before = await stored();
      const reply = await bulk(body);
      expect([reply.status, reply.body.code]).toEqual([400, 'INVALID_BODY']);
      expect(await stored()).toBe(before);
    },
  );

  it('keeps batches of one moment apart in the order of creation, so that no page ends within an unseen one', async () => {
    const place = { collection: items, writer: null };
    const batches = ['first', 'second', 'third'];
    const insert = (name: string) =>
      insertDocuments(
        test.app,
        place,
        Array.from({ length: 40 }, () => ({ name })),
      );
    await Promise.all(batches.map(insert));
    const read = await request(test.server).get('/api/data/items?limit=120').set('x-api-key', owner.secret).expect(200);
    const names = (read.body.data.items as { name: string }[]).map(({ name }) => name);
    expect(names.filter((name, at) => name !== names[at - 1]).sort()).toEqual(batches.toSorted());
  });

  it('checks all of them first and names the bad ones by their position', async () => {
    const before = await stored();
    const reply = await bulk([{ name: 'a' }, {}, { name: 5 }]);
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({
      message: 'Validation failed: 1.name is required',
      details: [
        { field: '1.name', rule: 'required' },
        { field: '2.name', rule: 'type' },
      ],
    });
    expect((await bulk([{ name: 'a' }, { name: 'b', $x: 1 }])).body.message).toMatch(/^Document 1: /);
    expect((await bulk([{ name: 'a' }, null])).body.message).toMatch(/^Document 1: /);
    expect(await stored()).toBe(before);
  });

  it('stores nothing when a unique value is taken, by a stored document or by one of the same batch', async () => {
    await bulk([{ name: 'first', code: 'taken' }]).expect(201);
    const before = await stored();
    for (const last of ['taken', 'twice']) {
      const reply = await bulk([{ name: 'x', code: 'twice' }, { name: 'y' }, { name: 'z', code: last }]);
      expect([reply.status, reply.body.code, reply.body.details[0].field]).toEqual([409, 'DUPLICATE_VALUE', 'code']);
      expect(await stored()).toBe(before);
    }
    expect(await hidden()).toBe(0);
    await bulk([{ name: 'x', code: 'twice' }]).expect(201);
  });

  it('lets exactly one of many concurrent batches with a common unique value win', async () => {
    const before = await stored();
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => bulk([{ name: 'a' }, { name: 'b', code: 'common' }, { name: 'c' }])),
    );
    expect(replies.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, ...Array<number>(19).fill(409)]);
    expect(await stored()).toBe(before + 3);
  });
});

describe('a bulk insert of an earlier version whose process died', () => {
  const documents = (code: string) =>
    ['a', 'b'].map((name) => readNewDocument(items, { name, code: `${code}-${name}` }, null, clock.now()));

  async function leaveBehind(code: string, state: 'open' | 'decided'): Promise<string[]> {
    const batch = documents(code);
    const ids = batch.map(({ _id }) => _id);
    await batchStore(test.app).insertOne({
      _id: ids[0]!,
      projectId: items.projectId,
      collectionId: items._id,
      ids,
      state,
      createdAt: new Date(clock.now()),
    });
    await storedDocuments(test.app, items).insertMany(batch.map((one) => ({ ...one, isDeleted: 'pending' as const })));
    return ids.map((id) => id.toHexString());
  }

  const get = (id: string) =>
    request(test.server).get(`/api/data/items/${id}?include_deleted=true`).set('x-api-key', owner.secret);

  it('leaves documents that nobody can see, change or delete, whose unique values are kept for them', async () => {
    const [id] = await leaveBehind('hidden', 'open');
    const key = { 'x-api-key': owner.secret };
    expect((await get(id!)).status).toBe(404);
    for (const [method, path] of [
      ['patch', ''],
      ['delete', ''],
      ['delete', '?permanent=true'],
      ['patch', '/recover'],
    ] as const) {
      const reply = await request(test.server)[method](`/api/data/items/${id}${path}`).set(key).send({ name: 'x' });
      expect(reply.status).toBe(404);
    }
    expect((await bulk([{ name: 'x', code: 'hidden-a' }])).status).toBe(409);
  });

  it('is undone when it was not decided, and finished when it was', async () => {
    const undone = await leaveBehind('undone', 'open');
    const finished = await leaveBehind('finished', 'decided');
    // What was decided stands, so it is finished by the first process that looks.
    expect(await settleBatches(test.app)).toBe(1);
    for (const id of finished) expect((await get(id)).body).toMatchObject({ isDeleted: false });
    clock.advance(31_000);
    await settleBatches(test.app);
    for (const id of undone) expect((await get(id)).status).toBe(404);
    await bulk([{ name: 'x', code: 'undone-a' }]).expect(201);
    clock.advance(25 * 3_600_000);
    await settleBatches(test.app);
    expect(await batchStore(test.app).countDocuments({})).toBe(0);
    expect(await storedDocuments(test.app, items).countDocuments({ isDeleted: 'pending' })).toBe(0);
  });
});

describe.runIf(process.env.BSVC_TEST_TRANSPORT !== 'wire')('a bulk insert into the embedded engine', () => {
  it('is refused whole with 413 when its index entries are too many for one transaction', async () => {
    const { name } = await buildCollection(test.app, owner.project, { indexes: ['tags'] });
    const tags = Array.from({ length: 100 }, (_, tag) => tag);
    const send = (count: number) =>
      request(test.server)
        .post(`/api/data/${name}/bulk`)
        .set('x-api-key', owner.secret)
        .send(Array.from({ length: count }, () => ({ tags })));
    expect((await send(100).expect(413)).body.code).toBe('BATCH_TOO_LARGE');
    const { body } = await request(test.server).get(`/api/data/${name}?count=true`).set('x-api-key', owner.secret);
    expect(body.data).toEqual({ count: 0 });
    await send(40).expect(201);
  });

  it.each([
    ['different', (item: number) => item],
    ['equal', () => 'the same'],
  ])('and so is one document, stored or changed, with %s items', async (_what, make) => {
    const { name } = await buildCollection(test.app, owner.project, { indexes: ['tags', 'tags,at'] });
    const tags = (count: number) => ({ tags: Array.from({ length: count }, (_, item) => make(item)) });
    const call = (method: 'post' | 'patch' | 'put', path: string, body: object) =>
      request(test.server)[method](`/api/data/${path}`).set('x-api-key', owner.secret).send(body);
    const { body } = await call('post', name, tags(2000)).expect(201);
    const stored = `${name}/${(body as { _id: string })._id}`;
    for (const reply of [
      await call('post', name, tags(5001)),
      await call('patch', stored, tags(5001)),
      await call('put', stored, tags(5001)),
    ]) {
      expect(reply.status).toBe(413);
      expect(reply.body).toMatchObject({ code: 'DOCUMENT_TOO_LARGE' });
      expect((reply.body as { message: string }).message).toContain('10000 index entries');
    }
    await call('patch', stored, { tags: [] }).expect(200);
  });
});

/**
 * Only where the database cannot store several documents at once; the embedded engine keeps nothing of a batch that is
 * not complete.
 */
describe.runIf(process.env.BSVC_TEST_TRANSPORT === 'wire')('a bulk insert that is under way in a MongoDB', () => {
  const key = (): Record<string, string> => ({ 'x-api-key': owner.secret });
  const NAMES = ['p', 'q', 'r'];

  async function begin(code: string) {
    const batch = NAMES.map((name) => readNewDocument(items, { name, code: `${code}-${name}` }, null, clock.now()));
    const ids = batch.map(({ _id }) => _id);
    const number = await openBatch(test.app, items, ids);
    await insertHiddenRecords(test.app, items, batch, number);
    return { ids, code, first: ids[0]! };
  }

  /** How many of the batch each way of reading shows. */
  async function seen({ ids, code }: { ids: { toHexString(): string }[]; code: string }): Promise<number[]> {
    const get = (path: string) => request(test.server).get(`/api/data/items${path}`).set(key());
    const aggregate = (pipeline: object[]) =>
      request(test.server).post('/api/data/items/aggregate').set(key()).send({ pipeline });
    const filter = `code_regex=${encodeURIComponent(`^${code}-`)}`;
    const match = { $match: { code: { $regex: `^${code}-` } } };
    const list = await get(`?${filter}`).expect(200);
    const walk = await get(`?${filter}&cursor=start&limit=2`).expect(200);
    const count = await get(`?${filter}&count=true`).expect(200);
    const grouped = await aggregate([match, { $count: 'n' }]);
    const joined = await aggregate([
      { $limit: 1 },
      { $lookup: { from: 'items', pipeline: [match], as: 'all' } },
      { $project: { n: { $size: '$all' } } },
    ]);
    const single = await Promise.all(ids.map((id) => get(`/${id.toHexString()}`)));
    return [
      (list.body.data.items as unknown[]).length,
      list.body.data.total as number,
      Math.min(3, (walk.body.data.items as unknown[]).length * 1.5),
      count.body.data.count as number,
      (grouped.body.data as { n: number }[])[0]?.n ?? 0,
      (joined.body.data as { n: number }[])[0]?.n ?? 0,
      single.filter(({ status }) => status === 200).length,
    ];
  }

  it('is seen by nobody until the one write that shows all of it to everybody', async () => {
    await bulk([{ name: 'already there' }]).expect(201);
    const batch = await begin('underway');
    expect(await seen(batch)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    await showBatch(test.app, items, batch.first);
    expect(await seen(batch)).toEqual([3, 3, 3, 3, 3, 3, 3]);
  });

  it('cannot be changed, trashed, deleted or recovered, and keeps its unique values', async () => {
    const { first } = await begin('closed');
    for (const [method, path] of [
      ['patch', ''],
      ['delete', ''],
      ['delete', '?permanent=true'],
      ['patch', '/recover'],
    ] as const) {
      const url = `/api/data/items/${first.toHexString()}${path}`;
      expect((await request(test.server)[method](url).set(key()).send({ name: 'x' })).status).toBe(404);
    }
    expect((await bulk([{ name: 'x', code: 'closed-p' }])).status).toBe(409);
  });

  it('is removed when its writer has not shown it within half a minute, and can no longer be shown', async () => {
    const batch = await begin('dropped');
    await settleBatches(test.app);
    expect((await bulk([{ name: 'x', code: 'dropped-p' }])).status).toBe(409);
    clock.advance(31_000);
    await settleBatches(test.app);
    expect(await showBatch(test.app, items, batch.first)).toBe(false);
    expect(await seen(batch)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    await bulk([{ name: 'x', code: 'dropped-p' }]).expect(201);
    clock.advance(25 * 3_600_000);
    await settleBatches(test.app);
    expect(await hidden()).toBe(0);
  });

  it('stays removed when its writer wakes up and writes on', async () => {
    const batch = await begin('late');
    await abandonBatch(test.app, items, batch.first);
    const late = [readNewDocument(items, { name: 's', code: 'late-s' }, null, clock.now())];
    const series = await seriesStore(test.app).findOne({ _id: items._id });
    await insertHiddenRecords(test.app, items, late, series!.next - 1);
    expect(await seen(batch)).toEqual([0, 0, 0, 0, 0, 0, 0]);
  });
});
