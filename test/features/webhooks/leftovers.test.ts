import { ObjectId } from 'bson';
import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { insertDocument } from '../../../src/features/documents/write/insert-document.js';
import { deliveryStore, type Delivery } from '../../../src/features/webhooks/deliveries/delivery.js';
import { editWebhook } from '../../../src/features/webhooks/edit-webhook.js';
import { waitingStore, type WaitingEvents } from '../../../src/features/webhooks/webhook-event.js';
import { sweepWebhooksJob } from '../../../src/features/webhooks/events/sweep-webhooks.job.js';
import { jobStore } from '../../../src/platform/jobs/job.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../../helpers/build-webhook.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openWebhookReceiver } from '../../helpers/webhook-receiver.js';
import { use, useTestApp } from '../../helpers/use.js';

const SECOND = 1_000;
const HOUR = 3_600_000;

let owner: TestProject;
let posts: Collection;

const clock = createFakeClock();
const test = await useTestApp({ clock, settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_RATE_LIMIT: 'off' } });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  await deliveryStore(test.app).deleteMany({});
  owner = await buildProject(test.app);
  posts = await buildCollection(test.app, owner.project, { name: 'posts' });
  receiver.received = [];
  receiver.answer = (response) => void response.writeHead(200).end('ok');
});

/** The app as a process that dies once a change is stored, before anything follows from it. */
const crashing = (): App => ({ ...test.app, backgroundTasks: { add: () => undefined, idle: async () => undefined } });
const insertPost = async (app: App, collection = posts): Promise<string> =>
  (await insertDocument(app, { collection, writer: null }, { title: 'left' }))._id;

async function sweep(stopping = new AbortController().signal, app: App = test.app): Promise<void> {
  const signal = new AbortController().signal;
  await sweepWebhooksJob.run(app, {}, { signal, stopping } as never);
}

/** The app as one in which something happens whenever deliveries are stored, before they are. */
function onDeliveries(happens: () => void): App {
  const { db } = test.app;
  const transformTogether: typeof db.transformTogether = async (turns) => {
    happens();
    return db.transformTogether(turns);
  };
  return { ...test.app, db: { ...db, transformTogether } };
}

/** Which documents are told of by a sweep, and what it wakes. */
async function told(): Promise<string[]> {
  await sweep();
  await settleWebhooks(test.app);
  return receiver.received.splice(0).map(({ event }) => event.documentId);
}

describe('events of which no deliveries were made', () => {
  it('are all told by one sweep, however many they are, each once', async () => {
    await buildWebhook(test.app, owner.project, receiver.url, ['posts.insert']);
    await insertPost(crashing());
    const events = waitingStore(test.app);
    const first = (await events.findOne({}))!;
    const copies = Array.from({ length: 420 }, (): WaitingEvents => {
      const documentId = new ObjectId().toHexString();
      return {
        ...{ ...first, _id: `${first._id}${documentId}`, documentId },
        events: [{ ...first.events[0]!, id: `evt_${documentId}` }],
      };
    });
    await events.insertMany(copies);
    // A worker that is to stop ends with what it has begun.
    const stop = new AbortController();
    await sweep(
      stop.signal,
      onDeliveries(() => stop.abort()),
    );
    expect(await deliveryStore(test.app).countDocuments({})).toBe(200);
    await sweep();
    const deliveries = await deliveryStore(test.app).find({}).toArray();
    expect(deliveries).toHaveLength(421);
    expect(new Set(deliveries.map(({ documentId }) => documentId)).size).toBe(421);
    expect(await events.countDocuments({})).toBe(0);
  });

  it('are told of every collection and project', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const notes = await buildCollection(test.app, owner.project, { name: 'notes' });
    const ids = [await insertPost(crashing()), await insertPost(crashing(), notes)];
    const other = await buildProject(test.app);
    await buildWebhook(test.app, other.project, receiver.url);
    ids.push(await insertPost(crashing(), await buildCollection(test.app, other.project)));
    expect((await told()).sort()).toEqual([...ids].sort());
  });

  it('wait for the next sweep where the database fails, and none of them is lost', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const ids = [await insertPost(crashing()), await insertPost(crashing())];
    const failing = onDeliveries(() => {
      throw new Error('the disk is full');
    });
    await expect(sweep(undefined, failing)).rejects.toThrow('the disk is full');
    expect(await told()).toEqual(ids);
  });

  it('wait for the next sweep where the worker is to stop', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const id = await insertPost(crashing());
    await sweep(AbortSignal.abort());
    expect(await deliveryStore(test.app).countDocuments({})).toBe(0);
    expect(await told()).toEqual([id]);
  });
});

describe('deliveries that are due, and that nobody works on', () => {
  /** A delivery whose job was lost. */
  async function lose(): Promise<string> {
    const id = await insertPost(test.app);
    await test.app.backgroundTasks.idle();
    await jobStore(test.app).deleteMany({});
    return id;
  }
  const putOff = (ms: number): Promise<unknown> =>
    deliveryStore(test.app).updateMany({}, { $set: { dueAt: new Date(clock.now() + ms) } });

  it('are made after five seconds', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const id = await lose();
    clock.advance(5 * SECOND - 1);
    expect(await told()).toEqual([]);
    clock.advance(1);
    expect(await told()).toEqual([id]);
  });

  it('are made at once where they were put off by a clock that has been set back since', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const id = await lose();
    // Longer than any pause between attempts.
    await putOff(15 * HOUR);
    expect(await told()).toEqual([]);
    await putOff(15 * HOUR + 1);
    await sweep();
    const [brought] = (await deliveryStore(test.app).find({}).toArray()) as Delivery[];
    expect(brought!.dueAt).toEqual(new Date(clock.now()));
    clock.advance(5 * SECOND);
    expect(await told()).toEqual([id]);
  });

  it('wait on where their webhook is disabled and keeps them, and those of others are made', async () => {
    const { webhook } = await buildWebhook(test.app, owner.project, receiver.url);
    const other = await openWebhookReceiver();
    try {
      await buildWebhook(test.app, owner.project, other.url);
      const id = await lose();
      await editWebhook(test.app, owner.project, webhook.id.toHexString(), { enabled: false, waiting: 'keep' });
      await putOff(16 * HOUR);
      expect(await told()).toEqual([]);
      const dueAt = new Date(clock.now() + 16 * HOUR);
      expect(await deliveryStore(test.app).findOne({ webhookId: webhook.id })).toMatchObject({
        state: 'pending',
        dueAt,
      });
      clock.advance(5 * SECOND);
      await sweep();
      expect(await jobStore(test.app).countDocuments({ state: 'queued' })).toBe(1);
      await settleWebhooks(test.app);
      expect([receiver.actionsOf(id), other.actionsOf(id)]).toEqual([[], ['insert']]);
    } finally {
      await other.close();
    }
  });
});
