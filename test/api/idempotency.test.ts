import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { removeExpiredRecords } from '../world/jobs.js';
import { documentStore } from '../world/stored.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';

const clock = createFakeClock();

const test = await useTestApp({ clock, settings: { BSVC_TRUST_PROXY: '1' } });
const owner = await buildProject(test.app);
const orders = await buildCollection(test.app, owner.project, {
  name: 'orders',
  fields: [
    { name: 'item', type: 'String', required: true },
    { name: 'number', type: 'Number', unique: true },
  ],
  rls: { mode: 'private', ownerField: 'userId' },
});

const insert = (key: string, body: object, path = 'orders') =>
  request(test.server).post(`/api/data/${path}`).set('x-api-key', owner.secret).set('idempotency-key', key).send(body);
const stored = () => documentStore(test.app, orders).countDocuments({});

describe('Idempotency-Key', () => {
  it('gives a repeated insert the first answer and stores nothing more', async () => {
    const before = await stored();
    const first = await insert('order-1', { item: 'tea' }).expect(201);
    clock.advance(60_000);
    const again = await insert('order-1', { item: 'tea' }).expect(201);
    expect(again.body).toEqual(first.body);
    expect(await stored()).toBe(before + 1);
  });

  it('answers the document as it is now, and nothing of it once it is gone', async () => {
    const first = await insert('order-2', { item: 'tea' }).expect(201);
    const path = `/api/data/orders/${first.body._id}`;
    const changed = await request(test.server).patch(path).set('x-api-key', owner.secret).send({ item: 'coffee' });
    expect((await insert('order-2', { item: 'tea' }).expect(201)).body).toEqual(changed.body.data);
    const before = await stored();
    for (const then of ['', '?permanent=true']) {
      await request(test.server)
        .delete(path + then)
        .set('x-api-key', owner.secret)
        .expect(200);
      const again = await insert('order-2', { item: 'tea' });
      expect([again.status, again.body.code]).toEqual([404, 'DOCUMENT_NOT_FOUND']);
    }
    expect(await stored()).toBe(before - 1);
  });

  it('keeps ids and hashes, no word of what was sent or stored', async () => {
    const secret = 'words that nobody keeps';
    const keys = test.app.db.collection('idempotency_keys');
    const earlier = (await keys.find({}).toArray()).map(({ _id }) => String(_id));
    const { body } = await insert('secret-1', { item: secret }).expect(201);
    await insert('secret-2', [{ item: secret }, { item: secret }], 'orders/bulk').expect(201);
    const kept = (await keys.find({}).toArray()).filter(({ _id }) => !earlier.includes(String(_id)));
    expect(kept.map(({ ids }) => (ids as unknown[]).length).sort()).toEqual([1, 2]);
    expect(JSON.stringify(kept)).toContain(body._id);
    expect(JSON.stringify(kept)).not.toContain(secret);
  });

  it('answers 422 for another body under the same key', async () => {
    await insert('order-3', { item: 'tea' }).expect(201);
    const reply = await insert('order-3', { item: 'coffee' });
    expect([reply.status, reply.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    await insert('bulk-3', [{ item: 'tea' }], 'orders/bulk').expect(201);
    const bulk = await insert('bulk-3', [{ item: 'coffee' }], 'orders/bulk');
    expect([bulk.status, bulk.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('makes fifty concurrent inserts one document', async () => {
    const before = await stored();
    const replies = await Promise.all(Array.from({ length: 50 }, () => insert('order-4', { item: 'tea', number: 4 })));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(replies.map(({ body }) => (body as { _id: string })._id)).size).toBe(1);
    expect(await stored()).toBe(before + 1);
  });

  it('is free again after a refusal', async () => {
    expect((await insert('order-5', {})).status).toBe(400);
    await insert('order-5', { item: 'tea', number: 5 }).expect(201);
    expect((await insert('order-6', { item: 'tea', number: 5 })).status).toBe(409);
    await insert('order-6', { item: 'tea', number: 6 }).expect(201);
  });

  it('belongs to one collection and one writer', async () => {
    await buildCollection(test.app, owner.project, { name: 'others' });
    const first = await insert('order-7', { item: 'tea' }).expect(201);
    const elsewhere = await insert('order-7', { item: 'coffee' }, 'others').expect(201);
    const user = await request(test.server)
      .post('/api/data/orders')
      .set('x-api-key', owner.publishable)
      .set('authorization', `Bearer ${signAccessToken(test.app, owner.project, '64b7f0c2a1b2c3d4e5f60718', 900_000)}`)
      .set('idempotency-key', 'order-7')
      .send({ item: 'water' })
      .expect(201);
    const ids = [first, elsewhere, user].map(({ body }) => (body as { _id: string })._id);
    expect(new Set(ids).size).toBe(3);
  });

  it('of visitors who are not signed in never meet, on one network or several', async () => {
    const notes = await buildCollection(test.app, owner.project, {
      name: 'notes',
      rules: { read: 'anyone', create: 'anyone', update: 'nobody', delete: 'nobody' },
    });
    const visit = async (network: string, body: object, path = notes.name): Promise<string> => {
      const reply = await request(test.server)
        .post(`/api/data/${path}`)
        .set({ 'x-api-key': owner.publishable, 'x-forwarded-for': network, 'idempotency-key': 'order-1' })
        .send(body);
      expect([network, reply.status]).toEqual([network, 201]);
      return (reply.body as { _id: string })._id;
    };
    const [tea, water] = [{ text: 'tea' }, { text: 'water' }];
    const first = await visit('203.0.113.1', tea);
    const others = [
      await visit('203.0.113.1', water),
      await visit('203.0.113.2', tea),
      await visit('2001:db8:0:1::1', tea),
      await visit('2001:db8:0:2::1', tea),
    ];
    expect(new Set([first, ...others]).size).toBe(5);
    // The same request, sent again.
    expect(await visit('203.0.113.1', tea)).toBe(first);
    expect(await visit('2001:db8:0:1::1', tea)).toBe(others[2]);
  });

  it('is forgotten after 24 hours', async () => {
    const first = await insert('order-8', { item: 'tea' }).expect(201);
    clock.advance(24 * 3_600_000 + 1);
    const later = await insert('order-8', { item: 'coffee' }).expect(201);
    expect(later.body._id).not.toBe(first.body._id);
    clock.advance(24 * 3_600_000 + 1);
    expect(await removeExpiredRecords(test.app)).toBeGreaterThan(0);
    expect(await removeExpiredRecords(test.app)).toBe(0);
  });

  it('holds for bulk inserts, at once and after the other', async () => {
    const before = await stored();
    const body = [{ item: 'a' }, { item: 'b' }];
    const attempts = await Promise.all(Array.from({ length: 10 }, () => insert('bulk-1', body, 'orders/bulk')));
    expect(attempts.map(({ status }) => status)).toEqual(attempts.map(() => 201));
    const last = await insert('bulk-1', body, 'orders/bulk').expect(201);
    for (const { status, body: answer } of attempts) if (status === 201) expect(answer).toEqual(last.body);
    for (const id of (last.body as { data: { ids: string[] } }).data.ids.slice(0, 1)) {
      await request(test.server).delete(`/api/data/orders/${id}`).set('x-api-key', owner.secret).expect(200);
    }
    expect((await insert('bulk-1', body, 'orders/bulk').expect(201)).body).toEqual(last.body);
    await request(test.server)
      .patch(`/api/data/orders/${(last.body as { data: { ids: string[] } }).data.ids[0]!}/recover`)
      .set('x-api-key', owner.secret)
      .expect(200);
    expect(await stored()).toBe(before + 2);
  });

  it.each([
    ['orders', 'a b'],
    ['orders', 'ä'],
    ['orders', 'x'.repeat(256)],
    ['orders/bulk', 'a b'],
  ])('to %s of the form %j is refused', async (path, key) => {
    const reply = await fetch(`${test.url}/api/data/${path}`, {
      method: 'POST',
      headers: { 'x-api-key': owner.secret, 'content-type': 'application/json', 'idempotency-key': key },
      body: path === 'orders' ? '{"item":"tea"}' : '[{"item":"tea"}]',
    });
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ code: 'INVALID_IDEMPOTENCY_KEY' });
  });
});
