import type { ServerResponse } from 'node:http';
import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { insertDocument } from '../../../src/features/documents/write/insert-document.js';
import { deliverWebhook } from '../../../src/features/webhooks/deliveries/deliver-webhook.job.js';
import { deliveryStore, type Delivery } from '../../../src/features/webhooks/deliveries/delivery.js';
import { editWebhook, removeWebhook } from '../../../src/features/webhooks/edit-webhook.js';
import { listProjectWebhooks, requireWebhook, type Webhook } from '../../../src/features/webhooks/webhook-store.js';
import { openCache } from '../../../src/platform/cache.js';
import type { RunAgain } from '../../../src/platform/jobs/job.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../../helpers/build-webhook.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openWebhookReceiver } from '../../helpers/webhook-receiver.js';
import { use, useTestApp } from '../../helpers/use.js';
import { Crash, crashAfter } from '../files/crashing-app.js';

const SECOND = 1_000;

let owner: TestProject;
let posts: Collection;
let webhook: Webhook;

const clock = createFakeClock();
const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_RATE_LIMIT: 'off' };
const test = await useTestApp({ clock, settings });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  await deliveryStore(test.app).deleteMany({});
  owner = await buildProject(test.app);
  posts = await buildCollection(test.app, owner.project, { name: 'posts' });
  ({ webhook } = await buildWebhook(test.app, owner.project, receiver.url));
  receiver.received = [];
  receiver.answer = accept;
});

const answerWith = (status: number) => (response: ServerResponse) => void response.writeHead(status).end();
const accept = answerWith(200);
const refuse = answerWith(500);

/** Stores documents, whose events become deliveries that nobody works on yet. */
async function insertPosts(count: number, app: App = test.app): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    ids.push((await insertDocument(app, { collection: posts, writer: null }, { n }))._id);
  }
  await app.backgroundTasks.idle();
  return ids;
}

interface RunOptions {
  app?: App;
  /** Above 1: a run before it did not come to its end. */
  attempt?: number;
  signal?: AbortSignal;
  stopping?: AbortSignal;
}

/** One run of the job that delivers for the webhook. */
function run({ app = test.app, attempt = 1, ...signals }: RunOptions = {}): Promise<RunAgain | void> {
  const payload = { projectId: owner.project._id.toHexString(), webhookId: webhook.id.toHexString() };
  const never = new AbortController().signal;
  return deliverWebhook.run(app, payload, { attempt, signal: never, stopping: never, ...signals } as never);
}

const listDeliveries = (of = webhook): Promise<Delivery[]> =>
  deliveryStore(test.app).find({ webhookId: of.id }).sort({ createdAt: 1, _id: 1 }).toArray() as Promise<Delivery[]>;
const edit = (changes: Parameters<typeof editWebhook>[3], app: App = test.app): Promise<Webhook> =>
  editWebhook(app, owner.project, webhook.id.toHexString(), changes);
const stored = (of = webhook): Promise<Webhook> => requireWebhook(test.app, owner.project._id, of.id.toHexString());

/** Another process on the same data, which hears of no change but its own, and knows the webhooks as they are now. */
async function openProcess(): Promise<App> {
  const app = { ...test.app, cache: openCache({ send: () => undefined, on: () => undefined }) };
  await listProjectWebhooks(app, owner.project._id);
  return app;
}

describe('an event that a process queued which had not heard that the webhook is disabled', () => {
  it('fails with what waited, and names the reason', async () => {
    const late = await openProcess();
    await edit({ enabled: false });
    await insertPosts(1, late);
    expect(await run()).toBeUndefined();
    expect(await listDeliveries()).toMatchObject([
      { state: 'failed', attempts: [{ status: null, error: 'The webhook was disabled or removed.' }] },
    ]);
    expect(receiver.received).toEqual([]);
  });

  it('fails too when the webhook was removed', async () => {
    const late = await openProcess();
    await removeWebhook(test.app, owner.project, webhook.id.toHexString());
    await insertPosts(1, late);
    await run();
    expect(await listDeliveries()).toMatchObject([{ state: 'failed' }]);
  });

  it('waits where what waits is kept, and goes out once the webhook is enabled again', async () => {
    const late = await openProcess();
    await edit({ enabled: false, waiting: 'keep' });
    const [id] = await insertPosts(1, late);
    await run();
    expect(await listDeliveries()).toMatchObject([{ state: 'pending', attempts: [] }]);
    const worker = await openProcess();
    await edit({ enabled: true });
    // This worker has not heard of that either: what is stored counts.
    await run({ app: worker });
    expect(receiver.actionsOf(id!)).toEqual(['insert']);
    expect(await listDeliveries()).toMatchObject([{ state: 'delivered' }]);
  });
});

describe('one run of deliveries', () => {
  it('sends at most eight requests at once, however much waits, and comes to the end of it', async () => {
    await insertPosts(20);
    const open: ServerResponse[] = [];
    let most = 0;
    receiver.answer = (response) => {
      most = Math.max(most, open.push(response));
      if (open.length === 8 || receiver.received.length > 16) for (const each of open.splice(0)) accept(each);
    };
    expect(await run()).toBeUndefined();
    expect(most).toBe(8);
    expect(receiver.received).toHaveLength(20);
    expect((await listDeliveries()).every(({ state }) => state === 'delivered')).toBe(true);
  });

  it('ends after sixteen failures without a success, and the next begins after five seconds', async () => {
    receiver.answer = refuse;
    await insertPosts(40);
    expect(await run()).toEqual({ again: new Date(clock.now() + 5 * SECOND) });
    // Eight are on their way when the sixteenth has failed.
    expect(receiver.received.length).toBeGreaterThanOrEqual(16);
    expect(receiver.received.length).toBeLessThan(16 + 8);
    receiver.answer = accept;
    await run();
    expect(new Set(receiver.received.map(({ event }) => event.id)).size).toBe(40);
  });

  it('goes on where one succeeds now and then', async () => {
    let count = 0;
    receiver.answer = (response) => (++count % 5 === 0 ? accept(response) : refuse(response));
    await insertPosts(40);
    const again = (await run())!.again.getTime() - clock.now();
    expect(receiver.received).toHaveLength(40);
    // The first retry.
    expect(again).toBeGreaterThanOrEqual(5 * SECOND);
    expect(again).toBeLessThanOrEqual(5.5 * SECOND);
  });

  it('sends nothing more when the worker is to stop, and is followed by another at once', async () => {
    await insertPosts(1);
    expect(await run({ stopping: AbortSignal.abort() })).toEqual({ again: new Date(clock.now()) });
    expect(receiver.received).toEqual([]);
    expect(await listDeliveries()).toMatchObject([{ state: 'pending', claims: 0, attempts: [] }]);
  });

  it('leaves a request that was cut off by its end as if it had not been made', async () => {
    const [id] = await insertPosts(1);
    for (const attempt of [1, 2]) {
      const end = new AbortController();
      receiver.answer = () => end.abort();
      expect(await run({ attempt, signal: end.signal })).toEqual({ again: new Date(clock.now()) });
      expect(await listDeliveries()).toMatchObject([{ state: 'pending', unfinished: 0, failures: 0, attempts: [] }]);
    }
    receiver.answer = accept;
    await run();
    expect(receiver.actionsOf(id!)).toEqual(['insert', 'insert', 'insert']);
    expect(await listDeliveries()).toMatchObject([{ state: 'delivered', attempts: [{ status: 200 }] }]);
  });
});

describe('a failure of the service itself', () => {
  it('ends the run, which is tried again, and is none of the receiver’s', async () => {
    const [id] = await insertPosts(1);
    const decrypt = (): never => {
      throw new Error('the secret cannot be opened');
    };
    const broken = { ...test.app, secrets: { ...test.app.secrets, decrypt } };
    await expect(run({ app: broken })).rejects.toThrow('the secret cannot be opened');
    expect(receiver.received).toEqual([]);
    expect(await listDeliveries()).toMatchObject([{ state: 'pending', failures: 0, attempts: [] }]);
    expect(await stored()).toMatchObject({ failingSince: null });
    await run({ attempt: 2 });
    expect(receiver.actionsOf(id!)).toEqual(['insert']);
  });
});

describe('a delivery whose attempts all take their process with them', () => {
  it('is tried every twenty seconds, and given up after twenty times', async () => {
    await insertPosts(1);
    for (let death = 1; death <= 20; death++) {
      await expect(run({ app: crashAfter(test.app, 1).app, attempt: 2 })).rejects.toThrow(Crash);
      // Somebody may be at it.
      expect(await run({ attempt: 2 })).toEqual({ again: new Date(clock.now() + 20 * SECOND) });
      clock.advance(20 * SECOND);
    }
    expect(await listDeliveries()).toMatchObject([{ state: 'pending' }]);
    await run({ attempt: 2 });
    expect(receiver.received).toEqual([]);
    expect(await listDeliveries()).toMatchObject([
      { state: 'failed', attempts: [{ status: null, error: 'Every attempt was cut off before its end.' }] },
    ]);
  });

  it('is delivered like any other where one comes to its end before', async () => {
    await insertPosts(1);
    for (let death = 1; death <= 19; death++) {
      await expect(run({ app: crashAfter(test.app, 1).app, attempt: 2 })).rejects.toThrow(Crash);
      clock.advance(20 * SECOND);
    }
    await run({ attempt: 2 });
    expect(receiver.received).toHaveLength(1);
    expect(await listDeliveries()).toMatchObject([{ state: 'delivered', unfinished: 0 }]);
  });
});

describe('what an outcome does to webhooks', () => {
  it('is nothing to another webhook of the project', async () => {
    const other = await openWebhookReceiver();
    try {
      const neighbour = (await buildWebhook(test.app, owner.project, other.url)).webhook;
      receiver.answer = answerWith(410);
      await insertPosts(1);
      await settleWebhooks(test.app);
      expect(await stored()).toMatchObject({ disabled: 'gone' });
      expect(await stored(neighbour)).toEqual(neighbour);
      await insertPosts(1);
      await settleWebhooks(test.app);
      expect([receiver.received.length, other.received.length]).toEqual([1, 2]);
    } finally {
      await other.close();
    }
  });

  it('is nothing either while it works, and the time of a first failure where it does not', async () => {
    clock.advance(SECOND);
    await insertPosts(1);
    await run();
    expect((await stored()).updatedAt).toEqual(webhook.updatedAt);
    receiver.answer = refuse;
    await insertPosts(1);
    await run();
    const failed = { failingSince: new Date(clock.now()), updatedAt: new Date(clock.now()) };
    expect(await stored()).toMatchObject(failed);
    clock.advance(SECOND);
    await insertPosts(1);
    await run();
    expect(await stored()).toMatchObject(failed);
  });

  it('is no other reason for one that was disabled meanwhile, and what it keeps stays', async () => {
    const [id] = await insertPosts(1);
    const change = supertest(test.url).patch(`/api/data/posts/${id!}`).set('x-api-key', owner.secret);
    await change.send({ n: 1 }).expect(200);
    await test.app.backgroundTasks.idle();
    receiver.answer = (response) =>
      void edit({ enabled: false, waiting: 'keep' }).then(() => answerWith(410)(response));
    await run();
    expect(await stored()).toMatchObject({ disabled: 'requested', keepsWaiting: true });
    expect((await listDeliveries()).map(({ state }) => state)).toEqual(['failed', 'pending']);
    receiver.answer = accept;
    await edit({ enabled: true });
    await settleWebhooks(test.app);
    expect(receiver.actionsOf(id!)).toEqual(['insert', 'update']);
  });
});
