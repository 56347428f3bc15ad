import { ObjectId } from 'bson';
import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import { deliveryStore, type Delivery } from '../../../src/features/webhooks/deliveries/delivery.js';
import { listProjectDeliveries, readDelivery } from '../../../src/features/webhooks/deliveries/list-deliveries.js';
import { payloadId, payloadStore, readPayload } from '../../../src/features/webhooks/deliveries/payload.js';
import { removeOldDeliveriesJob } from '../../../src/features/webhooks/deliveries/remove-old-deliveries.job.js';
import { replayDelivery, testWebhook } from '../../../src/features/webhooks/deliveries/try-again.js';
import { deleteProject } from '../../../src/features/management/delete-project.js';
import { webhookStore, type Webhook } from '../../../src/features/webhooks/webhook-store.js';
import { DAY_MS } from '../../../src/platform/time/clock.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../../helpers/build-webhook.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openWebhookReceiver } from '../../helpers/webhook-receiver.js';
import { use, useTestApp } from '../../helpers/use.js';

let owner: TestProject;
let webhook: Webhook;

const clock = createFakeClock();
const settings = {
  BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
  BSVC_RATE_LIMIT: 'off',
};
const test = await useTestApp({ clock, settings, constants: { deliveriesMaxBytes: 100 * 1024 } });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  await deliveryStore(test.app).deleteMany({});
  await payloadStore(test.app).deleteMany({});
  receiver.received = [];
  receiver.answer = (response) => void response.writeHead(200).end('ok');
  await buildOwner();
});

async function buildOwner(): Promise<TestProject> {
  owner = await buildProject(test.app);
  await buildCollection(test.app, owner.project, { name: 'posts' });
  ({ webhook } = await buildWebhook(test.app, owner.project, receiver.url));
  return owner;
}

async function insertPost(body: object = {}): Promise<string> {
  const request = supertest(test.url).post('/api/data/posts').set('x-api-key', owner.secret);
  const { _id } = (await request.send(body).expect(201)).body as { _id: string };
  await settleWebhooks(test.app);
  clock.advance(1_000);
  return _id;
}

interface SweepOptions {
  app?: App;
  stopping?: AbortSignal;
}

async function sweep({ app = test.app, stopping = new AbortController().signal }: SweepOptions = {}): Promise<void> {
  const { signal } = new AbortController();
  await removeOldDeliveriesJob.run(app, {}, { signal, stopping } as never);
}

/** Lets days pass evenly: nothing is removed by a clock that jumps. */
async function pass(days: number): Promise<void> {
  for (let passed = 0; passed < days; passed += 0.5) {
    clock.advance(DAY_MS / 2);
    await settleWebhooks(test.app);
    await sweep();
  }
}

const listDeliveries = (filter: object = {}): Promise<Delivery[]> =>
  deliveryStore(test.app).find(filter).sort({ createdAt: 1, _id: 1 }).toArray() as Promise<Delivery[]>;
const documentsOf = async (filter: object): Promise<(string | null)[]> =>
  (await listDeliveries(filter)).map(({ documentId }) => documentId);
const replay = (delivery: Delivery): Promise<Delivery> =>
  replayDelivery(test.app, owner.project, webhook.id.toHexString(), delivery._id);

const kept = async () => ({
  deliveries: (await listDeliveries()).map(({ state }) => state).sort(),
  payloads: await payloadStore(test.app).countDocuments({}),
});

describe('what is kept of webhooks', () => {
  it('is the payload once for all webhooks of an event, until a day after the last was delivered', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    await insertPost();
    expect(await kept()).toEqual({ deliveries: ['delivered', 'delivered'], payloads: 1 });
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    const [delivery] = (await listDeliveries({ webhookId: webhook.id })) as [Delivery];
    expect(delivery).not.toHaveProperty('body');
    expect(await readPayload(test.app, delivery)).toBe(receiver.received[0]!.body);

    await pass(0.5);
    await replay(delivery);
    await settleWebhooks(test.app);
    expect(receiver.received).toHaveLength(3);
    expect(receiver.received[2]!.body).toBe(receiver.received[0]!.body);

    await pass(0.5);
    expect(await kept()).toMatchObject({ payloads: 1 });
    await pass(1);
    expect(await kept()).toEqual({ deliveries: ['delivered', 'delivered'], payloads: 0 });
    const known = await readDelivery(test.app, owner.project, webhook.id.toHexString(), delivery._id);
    expect(await readPayload(test.app, known)).toBeNull();
    await expect(replay(delivery)).rejects.toMatchObject({
      ...{ code: 'PAYLOAD_REMOVED', message: expect.stringContaining('no longer kept') as string },
    });
  });

  it('is a delivered one for three days, one that failed for 30 days, and whole', async () => {
    await insertPost({ title: 'good' });
    receiver.answer = (response) => void response.writeHead(500).end('no');
    await insertPost({ title: 'bad' });
    await pass(5);
    expect(await kept()).toEqual({ deliveries: ['failed'], payloads: 1 });
    await pass(25);
    expect(await kept()).toEqual({ deliveries: ['failed'], payloads: 1 });
    const { items } = await listProjectDeliveries(test.app, owner.project, { state: 'failed', limit: 10 });
    receiver.answer = (response) => void response.writeHead(200).end('ok');
    await replay(items[0]!);
    await settleWebhooks(test.app);
    expect(receiver.received.at(-1)!.event.data).toMatchObject({ title: 'bad' });
    await pass(8);
    expect(await kept()).toEqual({ deliveries: [], payloads: 0 });
  });

  it('is written once for each attempt, and found by three indexes at a time', async () => {
    const writes: string[] = [];
    const { db } = test.app;
    const before = { collection: db.collection, transformTogether: db.transformTogether };
    const { collection } = before;
    const counting = (name: string): object => {
      const store = collection(name);
      if (name !== 'webhook_deliveries') return store;
      return new Proxy(store, {
        get(target, key, receiver) {
          const method: unknown = Reflect.get(target, key, receiver);
          if (typeof method !== 'function') return method;
          if (/^(insert|update|replace|delete|bulk|findOneAnd)/.test(String(key))) {
            return (...args: unknown[]): unknown => {
              writes.push(String(key));
              return method.apply(target, args) as unknown;
            };
          }
          return method.bind(target) as unknown;
        },
      });
    };
    const transformTogether: typeof db.transformTogether = (turns) => {
      for (const { collection: name } of turns) if (name === 'webhook_deliveries') writes.push('transform');
      return before.transformTogether(turns);
    };
    Object.assign(db, { collection: counting, transformTogether });
    await insertPost();
    Object.assign(db, before);
    expect(writes).toEqual(['transform', 'updateOne']);
    const indexes = await collection<Delivery>('webhook_deliveries').indexes();
    expect(indexes.map(({ name }) => name).sort()).toEqual(
      ['_id_', 'due', 'lanes', 'log', 'project_delivered', 'project_failed'].sort(),
    );
  });
});

describe('the payload of an event', () => {
  it('stays while one of its deliveries waits or has failed, whatever becomes of those of other events', async () => {
    receiver.answer = (response, { event }) => void response.writeHead(event.data.good ? 200 : 500).end();
    for (let n = 0; n < 6; n++) await insertPost({ n, good: n % 2 === 0 });
    await pass(1.5);
    const deliveries = await listDeliveries();
    expect(deliveries.map(({ state }) => state)).toEqual(Array(3).fill(['delivered', 'pending']).flat());
    for (const [n, delivery] of deliveries.entries()) {
      const body = await readPayload(test.app, delivery);
      if (n % 2 === 0) expect(body).toBeNull();
      else expect(JSON.parse(body!)).toMatchObject({ documentId: delivery.documentId, data: { n } });
    }
    await pass(3);
    const failed = await listDeliveries();
    expect(failed.map(({ state }) => state)).toEqual(['failed', 'failed', 'failed']);
    receiver.answer = (response) => void response.writeHead(200).end();
    receiver.received = [];
    await replay(failed[1]!);
    await settleWebhooks(test.app);
    expect(receiver.received.map(({ event }) => event.data.n)).toEqual([3]);
    await pass(1.5);
    const left = await Promise.all(failed.map((delivery) => readPayload(test.app, delivery)));
    expect(left.map((body) => body !== null)).toEqual([true, false, true]);
  });

  it('stays a day after the last of its deliveries', async () => {
    const other = await openWebhookReceiver();
    try {
      other.answer = (response) => void response.writeHead(503).end();
      await buildWebhook(test.app, owner.project, other.url);
      await insertPost();
      await pass(0.5);
      other.answer = (response) => void response.writeHead(200).end();
      await pass(0.5);
      const [delivery] = await listDeliveries();
      expect((await listDeliveries()).map(({ state }) => state)).toEqual(['delivered', 'delivered']);
      await pass(0.5);
      expect(await readPayload(test.app, delivery!)).not.toBeNull();
      await pass(1);
      expect(await readPayload(test.app, delivery!)).toBeNull();
    } finally {
      await other.close();
    }
  });

  it('stays when it is asked for at the very moment at which it would be removed', async () => {
    await insertPost();
    await insertPost();
    await pass(1);
    const [asked, other] = await listDeliveries();
    const { useReserve } = test.app.db;
    let replayed = false;
    const late: typeof useReserve = async (work) => {
      if (!replayed) await replay(asked!);
      replayed = true;
      return useReserve(work);
    };
    clock.advance(DAY_MS / 2);
    await sweep({ app: { ...test.app, db: { ...test.app.db, useReserve: late } } });
    expect(replayed).toBe(true);
    expect(await readPayload(test.app, other!)).toBeNull();
    await settleWebhooks(test.app);
    expect(receiver.received.at(-1)!.event.documentId).toBe(asked!.documentId);
    expect(await listDeliveries()).toMatchObject([{ state: 'delivered' }, { state: 'delivered' }]);
  });

  it('goes with its project, and no other does', async () => {
    await insertPost();
    const gone = owner;
    await buildOwner();
    const kept = await insertPost();
    await deleteProject(test.app, gone.project.name);
    expect(await documentsOf({})).toEqual([kept]);
    const [delivery] = await listDeliveries();
    expect(await payloadStore(test.app).find({}).toArray()).toMatchObject([{ _id: payloadId(delivery!) }]);
  });
});

describe('the webhooks of a project', () => {
  it('go with it, and those of no other do', async () => {
    await webhookStore(test.app).deleteMany({});
    await buildOwner();
    const [before, gone] = [owner, await buildOwner()];
    const after = await buildOwner();
    await deleteProject(test.app, gone.project.name);
    for (owner of [before, after]) {
      const id = await insertPost();
      expect(receiver.actionsOf(id)).toEqual(['insert']);
    }
    const records = await webhookStore(test.app).find({}).toArray();
    expect(records.map(({ _id }) => _id)).toEqual([before.project._id, after.project._id]);
  });
});

describe('what has been kept for long enough', () => {
  it('is removed by one sweep, however much it is', async () => {
    await insertPost();
    const [first] = (await listDeliveries()) as [Delivery];
    const payload = (await payloadStore(test.app).findOne({}))!;
    const copies = Array.from({ length: 520 }, () => {
      const eventId = `evt_${new ObjectId().toHexString()}`;
      return { ...first, _id: `${eventId}.${webhook.id.toHexString()}`, eventId };
    });
    await deliveryStore(test.app).insertMany(copies);
    await payloadStore(test.app).insertMany(copies.map((copy) => ({ ...payload, _id: payloadId(copy) })));
    for (let half = 0; half < 6; half++) {
      clock.advance(DAY_MS / 2);
      // Somebody looks at the clock.
      await sweep({ stopping: AbortSignal.abort() });
    }
    expect(await deliveryStore(test.app).countDocuments({})).toBe(521);
    expect(await payloadStore(test.app).countDocuments({})).toBe(521);
    await sweep();
    expect(await deliveryStore(test.app).countDocuments({})).toBe(0);
    expect(await payloadStore(test.app).countDocuments({})).toBe(0);
  });

  it('is not removed by a clock that jumps', async () => {
    await insertPost();
    await sweep();
    clock.advance(60 * DAY_MS);
    await sweep();
    expect(await listDeliveries()).toMatchObject([{ state: 'delivered' }]);
    await pass(2);
    expect(await listDeliveries()).toEqual([]);
  });

  it('stays for as long again when it was replayed', async () => {
    await insertPost();
    await insertPost();
    await pass(0.5);
    await replay((await listDeliveries())[0]!);
    await settleWebhooks(test.app);
    await pass(2.5);
    expect(await listDeliveries()).toHaveLength(1);
    await pass(0.5);
    expect(await listDeliveries()).toEqual([]);
  });
});

describe('a project with more deliveries than it may keep', () => {
  const LARGE = { text: 'x'.repeat(10_000) };

  /** Failed deliveries that take about 1,600 bytes each. */
  async function failTests(count: number): Promise<string[]> {
    receiver.answer = (response) => void response.writeHead(500).end('n'.repeat(800));
    const ids: string[] = [];
    for (let n = 0; n < count; n++) {
      ids.push((await testWebhook(test.app, owner.project, webhook.id.toHexString()))._id);
      clock.advance(1_000);
    }
    receiver.answer = (response) => void response.writeHead(200).end();
    return ids;
  }
  const idsOf = async (filter: object): Promise<string[]> => (await listDeliveries(filter)).map(({ _id }) => _id);

  it('loses those that were delivered before those that failed, also where these are older', async () => {
    const failed = await failTests(10);
    const delivered: string[] = [];
    for (let n = 0; n < 12; n++) delivered.push(await insertPost(LARGE));
    await sweep();
    expect(await idsOf({ state: 'failed' })).toEqual(failed);
    const left = await documentsOf({ state: 'delivered' });
    expect(left).toEqual(delivered.slice(-left.length));
    // Nine tenths of the room, less about 16 kB of those that failed.
    expect(left.length).toBeGreaterThanOrEqual(6);
    expect(left.length).toBeLessThanOrEqual(8);
    // Another sweep finds room enough.
    await insertPost();
    await sweep();
    expect(await listDeliveries()).toHaveLength(10 + left.length + 1);
  });

  it('loses the oldest of those that failed once nothing delivered is left', async () => {
    await insertPost(LARGE);
    const failed = await failTests(80);
    await sweep();
    expect(await documentsOf({ state: 'delivered' })).toEqual([]);
    const left = await idsOf({ state: 'failed' });
    expect(left).toEqual(failed.slice(-left.length));
    expect(left.length).toBeGreaterThan(40);
    expect(left.length).toBeLessThan(70);
  });

  it('keeps what waits though that alone is too much, and its operator is told', async () => {
    await insertPost();
    receiver.answer = (response) => void response.writeHead(500).end();
    const waiting: string[] = [];
    for (let n = 0; n < 11; n++) waiting.push(await insertPost(LARGE));
    await sweep();
    expect(await documentsOf({})).toEqual(waiting);
    const lines = test.logLines.filter((line) => line.includes('more than a project may keep'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(owner.project._id.toHexString());
  });

  it('costs no other project anything', async () => {
    const [id] = [await insertPost(LARGE)];
    await buildOwner();
    for (let n = 0; n < 12; n++) await insertPost(LARGE);
    await sweep();
    expect(await documentsOf({})).toContain(id);
    expect((await documentsOf({ projectId: owner.project._id })).length).toBeLessThan(10);
  });

  it('counts the payload of what was delivered for a day only', async () => {
    for (let n = 0; n < 8; n++) await insertPost(LARGE);
    await pass(1.5);
    for (let n = 0; n < 8; n++) await insertPost(LARGE);
    await buildOwner();
    // Together they have too much, but none of the two.
    for (let n = 0; n < 5; n++) await insertPost(LARGE);
    await sweep();
    expect(await listDeliveries({ state: 'delivered' })).toHaveLength(21);
  });
});
