import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { parseFieldSpec } from '../world/collections.js';
import { addAfter, addHook, listAfter, listCalls, removeAfter } from '../world/hooks.js';
import { addWebhook } from '../world/projects.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { settleWebhooks } from '../helpers/build-webhook.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use, useTestApp } from '../helpers/use.js';

const TOKEN = 'operator-token-for-tests';
const MINUTE = 60_000;

let owner: TestProject;

const folder = use(await openTempDir());
const clock = createFakeClock();
const settings = { BSVC_HOOKS_DIR: folder.path, BSVC_RATE_LIMIT: 'off', BSVC_ADMIN_TOKEN: TOKEN };
const test = await useTestApp({ settings, clock });
test.app.ownCode.serveAt(test.url);
beforeEach(async () => {
  owner = await buildProject(test.app);
  await buildCollection(test.app, owner.project, { name: 'orders' });
  await buildCollection(test.app, owner.project, { name: 'notes' });
});

/** The project's file with these handlers; the process loads it with the next call. */
async function handling(members: string): Promise<void> {
  const dir = join(folder.path, owner.project.name);
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'shop.mjs'), `export default { ${members} };\n`);
  test.app.ownCode.restart(owner.project._id.toHexString());
}

const NOTE = `({ event, document, before, actor, id, api }) =>
  api.collection('notes').insert({ event, document, ...(before && { before }), actor, told: id })`;

type Method = 'get' | 'post' | 'patch' | 'delete';
const call = (method: Method, path: string, body?: object) =>
  supertest(test.url)[method](`/api/data/${path}`).set('x-api-key', owner.secret).send(body);
async function notes(): Promise<Record<string, unknown>[]> {
  const { body } = await call('get', 'notes?sort=createdAt');
  return (body as { data: { items: Record<string, unknown>[] } }).data.items;
}
const insert = async (body: object): Promise<string> =>
  ((await call('post', 'orders', body).expect(201)).body as { _id: string })._id;

describe('a handler that hears of an event', () => {
  it('is called after the write with what a webhook is sent', async () => {
    await handling(`'after.orders.create': ${NOTE}, 'after.orders.update': ${NOTE}, 'after.orders.delete': ${NOTE}`);
    for (const action of ['create', 'update', 'delete']) {
      await addAfter(test.app, owner.project, { event: `after.orders.${action}`, run: 'shop.mjs' });
    }
    const id = await insert({ n: 1 });
    await settleWebhooks(test.app);
    await call('patch', `orders/${id}`, { n: 2 }).expect(200);
    await settleWebhooks(test.app);
    await call('delete', `orders/${id}`).expect(200);
    await settleWebhooks(test.app);
    const told = await notes();
    expect(told.map(({ event }) => event)).toEqual(['orders.insert', 'orders.update', 'orders.delete']);
    expect(told[1]).toMatchObject({ document: { _id: id, n: 2 }, before: { n: 1 }, actor: { type: 'key' } });
  });

  it('hears of an upsert as of what it came to, once own code before it has let it pass', async () => {
    const fields = ['slug:String&', 'n:Number', 'price:Number@hook'].map(parseFieldSpec);
    await buildCollection(test.app, owner.project, { name: 'pages', fields });
    const price = `({ document }) => ({ allow: document.n < 9, set: { price: document.n * 2 } })`;
    const events = ['create', 'update'].flatMap((action) => [`pages.${action}`, `after.pages.${action}`]);
    await handling(events.map((event) => `'${event}': ${event.startsWith('after') ? NOTE : price}`).join());
    for (const event of events) {
      await (event.startsWith('after') ? addAfter : addHook)(test.app, owner.project, { event, run: 'shop.mjs' });
    }
    for (const [n, status] of [
      [1, 201],
      [2, 200],
      [9, 403],
    ] as const) {
      await call('post', 'pages?upsert=slug', { slug: 'a', n }).expect(status);
      await settleWebhooks(test.app);
    }
    expect(await notes()).toMatchObject([
      { event: 'pages.insert', document: { n: 1, price: 2 } },
      { event: 'pages.update', document: { n: 2, price: 4 }, before: { n: 1, price: 2 } },
    ]);
  });

  it('is called again until it returns, with the same id, and replayed as any delivery', async () => {
    await handling(`'after.orders.create': () => { throw new Error('mail is away'); }`);
    const { webhook } = await addAfter(test.app, owner.project, { event: 'after.orders.create', run: 'shop.mjs' });
    await insert({ n: 1 });
    await settleWebhooks(test.app);
    expect((await listCalls(test.app, webhook.id, 1))[0]).toMatchObject({
      state: 'pending',
      attempts: [{ status: null, error: 'The handler threw: mail is away' }],
    });
    await handling(`'after.orders.create': ${NOTE}`);
    clock.advance(MINUTE);
    await settleWebhooks(test.app);
    const [delivery] = await listCalls(test.app, webhook.id, 1);
    expect(delivery).toMatchObject({ state: 'delivered', failures: 1 });
    const path = `/api/projects/${owner.project._id.toHexString()}/webhooks/${webhook.id.toHexString()}`;
    const asOperator = (method: 'get' | 'post', rest: string) =>
      supertest(test.url)[method](`${path}${rest}`).set('authorization', `Bearer ${TOKEN}`);
    await asOperator('post', `/deliveries/${delivery!._id}/replay`).expect(202);
    await settleWebhooks(test.app);
    const told = await notes();
    expect(told).toHaveLength(2);
    expect(told[0]!.told).toBe(told[1]!.told);
    expect((await asOperator('get', '').expect(200)).body).toMatchObject({
      data: { url: 'run:shop.mjs#after.orders.create' },
    });
    // A test event shows that the handler is there, and is none of its events.
    const tested = await asOperator('post', '/test').expect(200);
    expect(tested.body).toMatchObject({ data: { state: 'delivered' } });
    expect(await notes()).toHaveLength(2);
  });

  it('is one for each event, of a file, and counts for no plan', async () => {
    for (const event of ['create', 'update', 'delete'].map((action) => `after.orders.${action}`)) {
      await addAfter(test.app, owner.project, { event, run: 'shop.mjs' });
    }
    await addAfter(test.app, owner.project, { event: 'after.notes.create', run: 'shop.mjs#other' });
    await addAfter(test.app, owner.project, { event: 'after.notes.update', run: 'shop.mjs#other' });
    expect(await listAfter(test.app, owner.project)).toHaveLength(5);
    const again = { event: 'after.orders.create', run: 'shop.mjs' };
    await expect(addAfter(test.app, owner.project, again)).rejects.toMatchObject({ code: 'HOOK_EXISTS' });
    expect((await addAfter(test.app, owner.project, { ...again, ifNotExists: true })).created).toBe(false);
    await removeAfter(test.app, owner.project, 'after.orders.create');
    await expect(removeAfter(test.app, owner.project, 'after.orders.create')).rejects.toMatchObject({
      code: 'HOOK_NOT_FOUND',
    });
    const bad = { event: 'after.orders.recover', run: 'shop.mjs' };
    await expect(addAfter(test.app, owner.project, bad)).rejects.toMatchObject({ code: 'INVALID_EVENTS' });
    await expect(addAfter(test.app, owner.project, { event: again.event })).rejects.toMatchObject({
      code: 'INVALID_HOOK',
    });
    for (const url of ['run:/etc/shop.mjs#a', 'run:../other/shop.mjs#a', 'run:shop.mjs#a', 'run:']) {
      const webhook = addWebhook(test.app, owner.project, { url, events: ['*'] });
      await expect(webhook).rejects.toMatchObject({ code: 'INVALID_URL' });
    }
    // Nor does an operator make one of an address, or another one of it.
    const path = `/api/projects/${owner.project._id.toHexString()}/webhooks`;
    const asOperator = (method: 'post' | 'patch', rest: string, body: object) =>
      supertest(test.url)[method](`${path}${rest}`).set('authorization', `Bearer ${TOKEN}`).send(body);
    await asOperator('post', '', { url: 'run:shop.mjs#other', events: ['*'] }).expect(400);
    const { webhook } = await addAfter(test.app, owner.project, again);
    for (const change of [{ url: 'https://a.example' }, { events: ['*'] }]) {
      await asOperator('patch', `/${webhook.id.toHexString()}`, change).expect(400);
    }
    await asOperator('patch', `/${webhook.id.toHexString()}`, { enabled: false }).expect(200);
  });
});
