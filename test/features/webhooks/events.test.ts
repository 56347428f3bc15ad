import { ObjectId } from 'bson';
import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import { HIDDEN_FIELD } from '../../../src/features/collections/fields/field.js';
import { documentStore } from '../../../src/features/documents/store/document-store.js';
import { insertDocumentRecord, insertDocument } from '../../../src/features/documents/write/insert-document.js';
import { updateDocument } from '../../../src/features/documents/write/update-document.js';
import { readNewDocument } from '../../../src/features/documents/write/new-document.js';
import { relayWaiting } from '../../../src/features/webhooks/events/relay-events.js';
import { deliveryStore, type Delivery } from '../../../src/features/webhooks/deliveries/delivery.js';
import { waitingStore, type WaitingEvents } from '../../../src/features/webhooks/webhook-event.js';
import { editWebhook, removeWebhook } from '../../../src/features/webhooks/edit-webhook.js';
import { sweepWebhooksJob } from '../../../src/features/webhooks/events/sweep-webhooks.job.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { jobStore } from '../../../src/platform/jobs/job.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { buildWebhook, listAllDeliveries, settleWebhooks } from '../../helpers/build-webhook.js';
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
  await settleWebhooks(test.app);
  await deliveryStore(test.app).deleteMany({});
  receiver.received = [];
  receiver.answer = (response) => void response.writeHead(200).end('ok');
  owner = await buildProject(test.app);
  posts = await buildCollection(test.app, owner.project, { name: 'posts' });
});

const call = (method: 'post' | 'patch' | 'delete' | 'get', path: string, body?: object) =>
  supertest(test.url)[method](`/api/data/${path}`).set('x-api-key', owner.secret).send(body);

async function insertPost(body: object = { title: 'one' }): Promise<string> {
  const answer = await call('post', 'posts', body).expect(201);
  return (answer.body as { _id: string })._id;
}

/** The app as a process that dies once a change is stored, before anything follows from it. */
const crashing = (): App => ({ ...test.app, backgroundTasks: { add: () => undefined, idle: async () => undefined } });
const insertBy = async (app: App, collection = posts): Promise<string> =>
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

describe('a change of a document', () => {
  it('is told with its action and the document as it is afterwards', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const id = await insertPost({ title: 'one', meta: { views: 1 } });
    await call('patch', `posts/${id}`, { 'meta.views': 2 }).expect(200);
    await call('delete', `posts/${id}`).expect(200);
    await call('patch', `posts/${id}/recover`).expect(200);
    await call('delete', `posts/${id}?permanent=true`).expect(200);
    await settleWebhooks(test.app);
    expect(receiver.actionsOf(id)).toEqual(['insert', 'update', 'delete', 'recover', 'delete']);
    const [inserted, updated, trashed, recovered, removed] = receiver.received.map(({ event }) => event);
    const now = new Date(clock.now()).toISOString();
    expect(inserted).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-f]{24}$/),
      event: 'posts.insert',
      timestamp: now,
      projectId: owner.project._id.toHexString(),
      collection: 'posts',
      action: 'insert',
      documentId: id,
      actor: { type: 'key', id: expect.stringMatching(/^[0-9a-f]{24}$/) as string },
      data: {
        _id: id,
        title: 'one',
        meta: { views: 1 },
        isDeleted: false,
        deletedAt: null,
        createdAt: now,
        updatedAt: now,
      },
    });
    expect(updated!.data).toMatchObject({ meta: { views: 2 }, isDeleted: false });
    expect(updated!.before).toEqual({ meta: { views: 1 } });
    expect(trashed!.before).toEqual({ isDeleted: false, deletedAt: null });
    expect(recovered).not.toHaveProperty('before');
    expect(removed!.before).toEqual({ isDeleted: false, deletedAt: null });
    expect(trashed!.data).toMatchObject({ isDeleted: true, deletedAt: now });
    expect(recovered!.data).toMatchObject({ isDeleted: false, deletedAt: null });
    expect(removed!.data).toMatchObject({ _id: id, isDeleted: true });
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(5);
    expect(receiver.received.every(({ headers, event }) => headers['webhook-id'] === event.id)).toBe(true);
    expect(await documentStore(test.app, posts).countDocuments({})).toBe(0);
  });

  it('is told once for each document of a bulk insert', async () => {
    await buildWebhook(test.app, owner.project, receiver.url, ['posts.insert']);
    const answer = await call(
      'post',
      'posts/bulk',
      Array.from({ length: 20 }, (_, n) => ({ n })),
    ).expect(201);
    const { ids } = (answer.body as { data: { ids: string[] } }).data;
    await settleWebhooks(test.app);
    expect(receiver.received.map(({ event }) => event.documentId).sort()).toEqual([...ids].sort());
    expect(receiver.received.every(({ event }) => event.data.isDeleted === false)).toBe(true);
  });

  it('is not told when it was refused', async () => {
    await buildCollection(test.app, owner.project, {
      name: 'slugs',
      fields: [{ name: 'slug', type: 'String', required: true, unique: true }],
    });
    await buildWebhook(test.app, owner.project, receiver.url);
    await call('post', 'slugs', { slug: 'a' }).expect(201);
    await call('post', 'slugs', { slug: 'a' }).expect(409);
    await call('post', 'slugs', { slug: 7 }).expect(400);
    await call('post', 'slugs/bulk', [{ slug: 'b' }, { slug: 'a' }]).expect(409);
    await call('delete', 'slugs/0123456789abcdef01234567').expect(404);
    await settleWebhooks(test.app);
    expect(receiver.received).toHaveLength(1);
  });

  it('is told only to webhooks that listen to it', async () => {
    const other = await buildCollection(test.app, owner.project, { name: 'notes' });
    const { webhook } = await buildWebhook(test.app, owner.project, receiver.url, ['posts.update', '*.delete']);
    const id = await insertPost();
    await call('patch', `posts/${id}`, { title: 'two' }).expect(200);
    const note = await call('post', other.name, { a: 1 }).expect(201);
    await call('delete', `${other.name}/${(note.body as { _id: string })._id}`).expect(200);
    await settleWebhooks(test.app);
    expect(receiver.received.map(({ event }) => event.event)).toEqual(['posts.update', 'notes.delete']);
    expect(webhook.events).toEqual(['posts.update', '*.delete']);
  });

  it('is told without its data when that would be too large, and holds up no other', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const large = readNewDocument(posts, { text: '\u0001'.repeat(3_000_000) }, null, clock.now());
    await insertDocumentRecord(test.app, posts, large);
    const id = await insertPost({ title: 'small' });
    await settleWebhooks(test.app);
    expect(receiver.received.map(({ event }) => event.data)).toEqual([
      { _id: large._id.toHexString() },
      expect.objectContaining({ _id: id, title: 'small' }),
    ]);
  });

  it('is never told to another project', async () => {
    const stranger = await buildProject(test.app);
    await buildWebhook(test.app, stranger.project, receiver.url);
    await insertPost();
    await settleWebhooks(test.app);
    expect(receiver.received).toEqual([]);
  });
});

describe('events of one document', () => {
  it('arrive in the order of its changes, also when the receiver fails in between', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const id = await insertPost();
    let refusals = 0;
    receiver.answer = (response, { event }) => {
      const refuse = event.event === 'posts.update' && refusals++ < 2;
      response.writeHead(refuse ? 500 : 200).end();
    };
    for (let n = 0; n < 5; n++) await call('patch', `posts/${id}`, { n }).expect(200);
    for (let round = 0; round < 4; round++) {
      await settleWebhooks(test.app);
      clock.advance(70_000);
    }
    const accepted = receiver.received.filter(({ event }, at) => event.event !== 'posts.update' || at > 2);
    expect(accepted.map(({ event }) => event.data.n)).toEqual([undefined, 0, 1, 2, 3, 4]);
    expect(
      (await listAllDeliveries(test.app)).filter(({ projectId }) => projectId.equals(owner.project._id)),
    ).toSatisfy((all: { state: string }[]) => all.every(({ state }) => state === 'delivered'));
  });

  it('do not wait for those of another document', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const [blocked, free] = [await insertPost(), await insertPost()];
    await settleWebhooks(test.app);
    receiver.answer = (response, { event }) => void response.writeHead(event.documentId === blocked ? 500 : 200).end();
    await call('patch', `posts/${blocked}`, { n: 1 }).expect(200);
    await call('patch', `posts/${blocked}`, { n: 2 }).expect(200);
    await call('patch', `posts/${free}`, { n: 3 }).expect(200);
    await settleWebhooks(test.app);
    expect(receiver.actionsOf(free)).toEqual(['insert', 'update']);
    expect(receiver.actionsOf(blocked)).toEqual(['insert', 'update']);
  });
});

describe('what a crash leaves', () => {
  it('is told as it was, and before what follows: a later change takes along what waits', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const { _id } = await insertDocument(crashing(), { collection: posts, writer: null }, { title: 'first' });
    await updateDocument(crashing(), { collection: posts, writer: null }, _id, { title: 'second' });
    await call('patch', `posts/${_id}`, { title: 'third' }).expect(200);
    await settleWebhooks(test.app);
    const told = receiver.received.map(({ event }) => [event.action, event.data.title, event.before]);
    expect(told).toEqual([
      ['insert', 'first', undefined],
      ['update', 'second', { title: 'first' }],
      ['update', 'third', { title: 'second' }],
    ]);
  });

  it('is told once, however often it is relayed', async () => {
    for (let count = 0; count < 2; count++) await buildWebhook(test.app, owner.project, receiver.url);
    await insertDocument(crashing(), { collection: posts, writer: null }, { title: 'once' });
    await Promise.all([1, 2, 3].map(() => relayWaiting(test.app)));
    await settleWebhooks(test.app);
    await relayWaiting(test.app);
    await settleWebhooks(test.app);
    expect(receiver.received).toHaveLength(2);
    expect(new Set(receiver.received.map(({ event }) => event.id)).size).toBe(1);
  });

  it('is forgotten where no webhook listens to it any more', async () => {
    const { webhook } = await buildWebhook(test.app, owner.project, receiver.url);
    await insertDocument(crashing(), { collection: posts, writer: null }, { title: 'unheard' });
    await removeWebhook(test.app, owner.project, webhook.id.toHexString());
    await relayWaiting(test.app);
    expect(await waitingStore(test.app).countDocuments({})).toBe(0);
    expect(await listAllDeliveries(test.app)).not.toContainEqual(expect.objectContaining({ webhookId: webhook.id }));
  });
});

describe('events of which no deliveries were made', () => {
  it('are all told by one sweep, however many they are, each once', async () => {
    await buildWebhook(test.app, owner.project, receiver.url, ['posts.insert']);
    await insertBy(crashing());
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
    const ids = [await insertBy(crashing()), await insertBy(crashing(), notes)];
    const other = await buildProject(test.app);
    await buildWebhook(test.app, other.project, receiver.url);
    ids.push(await insertBy(crashing(), await buildCollection(test.app, other.project)));
    expect((await told()).sort()).toEqual([...ids].sort());
  });

  it('wait for the next sweep where the database fails, and none of them is lost', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const ids = [await insertBy(crashing()), await insertBy(crashing())];
    const failing = onDeliveries(() => {
      throw new Error('the disk is full');
    });
    await expect(sweep(undefined, failing)).rejects.toThrow('the disk is full');
    expect(await told()).toEqual(ids);
  });

  it('wait for the next sweep where the worker is to stop', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const id = await insertBy(crashing());
    await sweep(AbortSignal.abort());
    expect(await deliveryStore(test.app).countDocuments({})).toBe(0);
    expect(await told()).toEqual([id]);
  });
});

describe('deliveries that are due, and that nobody works on', () => {
  /** A delivery whose job was lost. */
  async function lose(): Promise<string> {
    const id = await insertBy(test.app);
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

describe('the service’s own notes in a document', () => {
  it('are never shown, nor can they be filtered, sorted, projected or written', async () => {
    await buildWebhook(test.app, owner.project, receiver.url);
    const id = await insertPost();
    await call('patch', `posts/${id}`, { title: 'two' }).expect(200);
    const answers = await Promise.all([
      call('get', `posts/${id}`),
      call('get', 'posts'),
      call('get', `posts?fields=title,${HIDDEN_FIELD}`),
      call('post', 'posts/aggregate', { pipeline: [{ $match: {} }] }),
      call('post', 'posts/aggregate', { pipeline: [{ $project: { [HIDDEN_FIELD]: 1 } }] }),
      call('post', 'posts/aggregate', { pipeline: [{ $project: { all: '$$ROOT' } }] }),
      call('get', `posts?${HIDDEN_FIELD}.seq=1`),
      call('get', `posts?sort=${HIDDEN_FIELD}.seq`),
      call('patch', `posts/${id}`, { [HIDDEN_FIELD]: { seq: 0 } }),
      call('patch', `posts/${id}`, { [`${HIDDEN_FIELD}.seq`]: 0 }),
      call('post', 'posts', { [HIDDEN_FIELD]: 1 }),
    ]);
    for (const answer of answers) expect(answer.text).not.toMatch(/"_bsvc":/);
    for (const answer of answers.slice(6)) expect(answer.status).toBe(400);
  });
});
