import { beforeEach, describe, expect, it } from 'vitest';
import type { Collection } from '../world/collections.js';
import { sweepWebhooksJob } from '../world/jobs.js';
import { changeDocumentRecord, findObjectId } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../helpers/build-webhook.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { buildOperator } from '../helpers/operator-client.js';
import { use, useTestApp } from '../helpers/use.js';
import { bearer, openUserClient } from '../helpers/user-client.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';

let owner: TestProject;
let cards: Collection;

const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_RATE_LIMIT: 'off', BSVC_BCRYPT_COST: '4' };
const test = await useTestApp({ settings });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  owner = await buildProject(test.app);
  cards = await buildCollection(test.app, owner.project, { name: 'cards' });
  await buildWebhook(test.app, owner.project, receiver.url);
  await settleWebhooks(test.app);
  receiver.received = [];
});

const call = openDataClient(test, () => serverOf(owner));

const insert = async (body: object): Promise<string> =>
  ((await call('post', 'cards', body).expect(201)).body as { _id: string })._id;

/** The payloads of what has happened since the last call. */
async function told(): Promise<Record<string, unknown>[]> {
  await settleWebhooks(test.app);
  return receiver.received.splice(0).map(({ event }) => event);
}

describe('the actor of an event', () => {
  it('is the key, the end user with it, or the operator', async () => {
    const id = await insert({ column: 'todo' });
    const [key] = await told();
    const secretKey = owner.project.keys.find(({ type }) => type === 'secret')!;
    expect(key!.actor).toEqual({ type: 'key', id: secretKey.id.toHexString() });

    const client = openUserClient(test, owner.publishable);
    const { accessToken, user } = (await client.signUp()).body as { accessToken: string; user: { _id: string } };
    const [signedUp] = await told();
    expect(signedUp!.actor).toMatchObject({ type: 'key' });
    await call('patch', `cards/${id}`, { column: 'doing' }, bearer(accessToken)).expect(200);
    const [byUser] = await told();
    expect(byUser!.actor).toEqual({ type: 'user', id: user._id });

    const operator = await buildOperator(test);
    const path = `/api/projects/${owner.project._id.toHexString()}/collections/cards/documents/import`;
    await operator.call('post', path, { documents: [{ column: 'done' }] }).expect(200);
    const [byOperator] = await told();
    expect(byOperator!.actor).toEqual({ type: 'operator', id: operator.id });
  });

  it('is the system where nobody asked', async () => {
    const id = findObjectId(await insert({ n: 1 }))!;
    await told();
    await changeDocumentRecord(test.app, cards, { _id: id }, { n: 2 });
    expect((await told())[0]!.actor).toEqual({ type: 'system' });
  });
});

describe('what was there before', () => {
  it('are the old values of the fields that a change has changed', async () => {
    const id = await insert({ column: 'todo', title: 'a', meta: { a: 1, b: 2 }, tags: ['x'] });
    await call('patch', `cards/${id}`, { column: 'done', title: 'a', 'meta.b': 3, due: '2026-12-01' }).expect(200);
    await call('delete', `cards/${id}`).expect(200);
    await call('delete', `cards/${id}?permanent=true`).expect(200);
    const [inserted, updated, trashed, removed] = await told();
    expect(inserted).not.toHaveProperty('before');
    expect(updated!.before).toEqual({ column: 'todo', meta: { a: 1, b: 2 }, due: null });
    expect(trashed!.before).toEqual({ isDeleted: false, deletedAt: null });
    expect(Object.keys(removed!.before as object)).toEqual(['deletedAt']);
  });

  it('are left out beyond 16 kB, and there after a crash', async () => {
    const id = await insert({ text: 'x'.repeat(20_000), n: 1 });
    await call('patch', `cards/${id}`, { text: 'short' }).expect(200);
    await call('patch', `cards/${id}`, { n: 2 }).expect(200);
    const [, large, small] = await told();
    expect(large).toMatchObject({ beforeOmitted: true });
    expect(large).not.toHaveProperty('before');
    expect(small!.before).toEqual({ n: 1 });

    const { backgroundTasks } = test.app;
    const add = backgroundTasks.add;
    backgroundTasks.add = () => undefined;
    await call('patch', `cards/${id}`, { n: 3 }).expect(200);
    backgroundTasks.add = add;
    await test.app.jobs.enqueue(sweepWebhooksJob, {});
    expect((await told())[0]).toMatchObject({ before: { n: 2 }, actor: { type: 'key' }, data: { n: 3 } });
  });

  it('fit the event before, however many write at once', async () => {
    const id = await insert({ n: 0 });
    await Promise.all(Array.from({ length: 20 }, (_, n) => call('patch', `cards/${id}`, { n: n + 1 }).expect(200)));
    const [inserted, ...updates] = (await told()) as { data: { n: number }; before?: { n: number } }[];
    expect(updates).toHaveLength(20);
    const held = [inserted!, ...updates].map(({ data }) => data.n);
    expect(updates.map(({ before }) => before?.n)).toEqual(held.slice(0, -1));
    expect(new Set(held).size).toBe(21);
  });

  it('hold nothing confidential of users', async () => {
    const client = openUserClient(test, owner.publishable);
    const { accessToken } = (await client.signUp({ password: 'first password' })).body as { accessToken: string };
    const change = { currentPassword: 'first password', newPassword: 'second password' };
    await client.post('/change-password', change, bearer(accessToken)).expect(200);
    const bodies = await settleWebhooks(test.app).then(() => receiver.received.map(({ body }) => body));
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).toContain('"before":{');
    expect(bodies.join()).not.toMatch(/password|token|\$2b\$|_bsvc/i);
  });
});
