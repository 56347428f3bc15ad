import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection } from '../../src/features/collections/collection.js';
import { documentStore, insertPendingRecords } from '../../src/features/documents/document-store.js';
import { batchStore } from '../../src/features/documents/insert-batch.js';
import { readNewDocument } from '../../src/features/documents/new-document.js';
import { settleBatches } from '../../src/features/documents/settle-batches.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
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
const stored = () => documentStore(test.app, items).countDocuments({});

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
    expect(await batchStore(test.app).countDocuments({})).toBe(0);
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
    expect(await batchStore(test.app).countDocuments({})).toBe(0);
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

describe('a bulk insert whose process died', () => {
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
    await insertPendingRecords(test.app, items, batch);
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
    expect(await settleBatches(test.app)).toBe(0);
    clock.advance(61_000);
    await settleBatches(test.app);
    for (const id of undone) expect((await get(id)).status).toBe(404);
    for (const id of finished) expect((await get(id)).body).toMatchObject({ isDeleted: false });
    await bulk([{ name: 'x', code: 'undone-a' }]).expect(201);
    clock.advance(25 * 3_600_000);
    await settleBatches(test.app);
    expect(await batchStore(test.app).countDocuments({})).toBe(0);
    expect(await documentStore(test.app, items).countDocuments({ isDeleted: 'pending' })).toBe(0);
  });
});
