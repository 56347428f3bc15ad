import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { insertDocuments } from '../world/documents.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';

const clock = createFakeClock();

const test = await useTestApp({ clock });
const owner = await buildProject(test.app);
const items = await buildCollection(test.app, owner.project, {
  name: 'items',
  fields: [
    { name: 'name', type: 'String', required: true },
    { name: 'code', type: 'String', unique: true },
  ],
});

const bulk = (body: unknown) =>
  request(test.server)
    .post('/api/data/items/bulk')
    .set('x-api-key', owner.secret)
    .send(body as object);
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
