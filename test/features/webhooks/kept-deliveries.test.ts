import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { deliveryStore, type Delivery } from '../../../src/features/webhooks/deliveries/delivery.js';
import { listProjectDeliveries, readDelivery } from '../../../src/features/webhooks/deliveries/list-deliveries.js';
import { payloadStore, readPayload } from '../../../src/features/webhooks/deliveries/payload.js';
import { removeOldDeliveriesJob } from '../../../src/features/webhooks/deliveries/remove-old-deliveries.job.js';
import { replayDelivery } from '../../../src/features/webhooks/deliveries/try-again.js';
import { DAY_MS } from '../../../src/platform/time/clock.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { buildWebhook, listAllDeliveries, settleWebhooks } from '../../helpers/build-webhook.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openWebhookReceiver } from '../../helpers/webhook-receiver.js';
import { use, useTestApp } from '../../helpers/use.js';

let owner: TestProject;

const clock = createFakeClock();
const settings = {
  BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
  BSVC_RATE_LIMIT: 'off',
};
const test = await useTestApp({ clock, settings, constants: { deliveriesMaxBytes: 40 * 1024 } });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  await deliveryStore(test.app).deleteMany({});
  await payloadStore(test.app).deleteMany({});
  receiver.received = [];
  receiver.answer = (response) => void response.writeHead(200).end('ok');
  owner = await buildProject(test.app);
  await buildCollection(test.app, owner.project, { name: 'posts' });
});

async function insertPost(body: object = { title: 'one' }): Promise<string> {
  const request = supertest(test.url).post('/api/data/posts').set('x-api-key', owner.secret);
  return ((await request.send(body).expect(201)).body as { _id: string })._id;
}

async function sweep(): Promise<void> {
  await test.app.jobs.enqueue(removeOldDeliveriesJob, {});
  await settleWebhooks(test.app);
}

/** Lets time pass evenly, as a service sees it that runs: nothing is removed by a clock that jumps. */
async function pass(days: number): Promise<void> {
  for (let passed = 0; passed < days; passed += 1) {
    clock.advance(Math.min(1, days) * DAY_MS);
    await sweep();
  }
}

const kept = async () => ({
  deliveries: (await listAllDeliveries(test.app)).map(({ state }) => state).sort(),
  payloads: await payloadStore(test.app).countDocuments({}),
});

describe('what is kept of webhooks', () => {
  it('is the payload once for all webhooks of an event, until a day after the last was delivered', async () => {
    const { webhook } = await buildWebhook(test.app, owner.project, receiver.url);
    await buildWebhook(test.app, owner.project, receiver.url);
    await insertPost();
    await settleWebhooks(test.app);
    expect(await kept()).toEqual({ deliveries: ['delivered', 'delivered'], payloads: 1 });
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    const delivery = (await listAllDeliveries(test.app)).find(({ webhookId }) => webhookId.equals(webhook.id))!;
    expect(delivery).not.toHaveProperty('body');
    expect(await readPayload(test.app, delivery)).toBe(receiver.received[0]!.body);

    await pass(0.5);
    await replayDelivery(test.app, owner.project, webhook.id.toHexString(), delivery._id);
    await settleWebhooks(test.app);
    expect(receiver.received).toHaveLength(3);
    expect(receiver.received[2]!.body).toBe(receiver.received[0]!.body);

    await pass(0.6);
    expect(await kept()).toMatchObject({ payloads: 1 });
    await pass(1);
    expect(await kept()).toEqual({ deliveries: ['delivered', 'delivered'], payloads: 0 });
    const known = await readDelivery(test.app, owner.project, webhook.id.toHexString(), delivery._id);
    expect(await readPayload(test.app, known)).toBeNull();
    await expect(replayDelivery(test.app, owner.project, webhook.id.toHexString(), delivery._id)).rejects.toMatchObject(
      { code: 'PAYLOAD_REMOVED', message: expect.stringContaining('no longer kept') as string },
    );
  });

  it('is a delivered one for three days, one that failed for 30 days, and whole', async () => {
    const { webhook } = await buildWebhook(test.app, owner.project, receiver.url);
    await insertPost({ title: 'good' });
    await settleWebhooks(test.app);
    receiver.answer = (response) => void response.writeHead(500).end('no');
    await insertPost({ title: 'bad' });
    for (let attempt = 0; attempt < 8; attempt++) {
      await settleWebhooks(test.app);
      clock.advance(13 * 3_600_000);
      await sweep();
    }
    expect(await kept()).toEqual({ deliveries: ['failed'], payloads: 1 });
    await pass(25);
    expect(await kept()).toEqual({ deliveries: ['failed'], payloads: 1 });
    const { items } = await listProjectDeliveries(test.app, owner.project, { state: 'failed', limit: 10 });
    receiver.answer = (response) => void response.writeHead(200).end('ok');
    await replayDelivery(test.app, owner.project, webhook.id.toHexString(), items[0]!._id);
    await settleWebhooks(test.app);
    expect(receiver.received.at(-1)!.event.data).toMatchObject({ title: 'bad' });
    await pass(8);
    expect(await kept()).toEqual({ deliveries: [], payloads: 0 });
  });

  it('is written once for each attempt, and found by three indexes at a time', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
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
    await settleWebhooks(test.app);
    Object.assign(db, before);
    expect(writes).toEqual(['transform', 'updateOne']);
    const indexes = await collection<Delivery>('webhook_deliveries').indexes();
    expect(indexes.map(({ name }) => name).sort()).toEqual(
      ['_id_', 'due', 'lanes', 'log', 'project_delivered', 'project_failed'].sort(),
    );
  });
});
