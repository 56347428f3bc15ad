import { ObjectId } from 'bson';
import supertest, { type Test } from 'supertest';
import { Webhook as Verifier } from 'standardwebhooks';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Collection } from '../world/collections.js';
import { addHook, listCalls, removeHook, type NewHook } from '../world/hooks.js';
import {
  buildCollection,
  buildProject,
  placeDocuments,
  storedDocuments,
  type TestProject,
} from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { use, useTestApp } from '../helpers/use.js';
import { bearer, openUserClient } from '../helpers/user-client.js';
import { openWebhookReceiver, type ReceivedWebhook, type WebhookReceiver } from '../helpers/webhook-receiver.js';

let owner: TestProject;
let secret: string;

const ALLOWED = { allow: true };

const clock = createFakeClock();
const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_RATE_LIMIT: 'off', BSVC_BCRYPT_COST: '4' };
const test = await useTestApp({ settings, clock });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  owner = await buildProject(test.app);
  const fields = [
    { name: 'quantity', type: 'Number', required: true, min: 1 },
    { name: 'price', type: 'Number', hook: true, max: 1000 },
    { name: 'note', type: 'String' },
  ] as const;
  const rules = { read: 'anyone', create: 'anyone', update: 'user' };
  await buildCollection(test.app, owner.project, { name: 'orders', fields: [...fields], rules });
  receiver.received = [];
  answering(ALLOWED);
});

/** The hook of an event at the receiver. */
async function hook(event: string, more: Partial<NewHook> = {}): Promise<string> {
  const { hook: added, secret: shown } = await addHook(test.app, owner.project, { event, url: receiver.url, ...more });
  secret = shown!;
  return added.id.toHexString();
}

function answering(answer: object | ((told: ReceivedWebhook['event']) => object)): void {
  receiver.answer = (response, { event }) => {
    const said = typeof answer === 'function' ? answer(event) : answer;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said));
  };
}

type Method = 'get' | 'post' | 'patch' | 'delete';
const call = (method: Method, path: string, body?: object, headers: Record<string, string> = {}): Test =>
  supertest(test.url)
    [method](`/api/${path}`)
    .set({ 'x-api-key': owner.secret, ...headers })
    .send(body);

const insert = async (body: object): Promise<string> =>
  ((await call('post', 'data/orders', body).expect(201)).body as { _id: string })._id;
const list = async (): Promise<{ price?: number }[]> =>
  ((await call('get', 'data/orders?sort=quantity')).body as { data: { items: { price?: number }[] } }).data.items;
const count = async (): Promise<number> => (await list()).length;

describe('a write that own code is asked about', () => {
  it('is stored with what is set, of a signed call that says what and who', async () => {
    await hook('orders.create');
    await hook('orders.update');
    answering(({ document }) => ({ allow: true, set: { price: (document as { quantity: number }).quantity * 7 } }));
    const created = await call('post', 'data/orders', { quantity: 2, price: 1 }).expect(201);
    expect(created.body).toMatchObject({ quantity: 2, price: 14 });
    const { _id: id } = created.body as { _id: string };
    expect(receiver.received[0]!.event).toMatchObject({
      event: 'orders.create',
      caller: { userId: null, roles: [], ip: '127.0.0.1' },
      document: { _id: id, quantity: 2, price: 1 },
      idempotencyKey: null,
    });
    const user = (await openUserClient(test, owner.publishable).signUp()).body as { accessToken: string };
    const asUser = { 'x-api-key': owner.publishable, ...bearer(user.accessToken) };
    const changed = await call('patch', `data/orders/${id}`, { $inc: { quantity: 1 } }, asUser).expect(200);
    expect((changed.body as { data: object }).data).toMatchObject({ quantity: 3, price: 21 });
    const { headers, body, event } = receiver.received[1]!;
    expect(event).toMatchObject({ document: { quantity: 3, price: 14 }, before: { quantity: 2, price: 14 } });
    expect((event.caller as { userId: string }).userId).toMatch(/^[0-9a-f]{24}$/);
    expect(headers['bsvc-hook-depth']).toBe('1');
    // Each hook has a secret of its own; the last one's signs this call.
    const sent = new Date(Number(headers['webhook-timestamp']) * 1000);
    const signed = new Verifier(secret).sign(headers['webhook-id'] as string, sent, body);
    expect(headers['webhook-signature']).toBe(signed);
  });

  it('is stored as ever where the answer begins with a byte order mark', async () => {
    await hook('orders.create');
    receiver.answer = (response) => void response.writeHead(200).end('\ufeff{"allow":true,"set":{"price":5}}');
    expect((await call('post', 'data/orders', { quantity: 2 }).expect(201)).body).toMatchObject({ price: 5 });
  });

  it('is refused as own code says, and then nothing is stored', async () => {
    await hook('orders.create');
    answering({ allow: false, status: 422, code: 'SOLD_OUT', message: 'There are no more' });
    const refused = await call('post', 'data/orders', { quantity: 2 }).expect(422);
    expect(refused.body).toMatchObject({ code: 'SOLD_OUT', message: 'There are no more' });
    expect(await count()).toBe(0);
  });

  it('asks about removals, and about nothing that changes nothing or is taken back', async () => {
    const id = await insert({ quantity: 1 });
    await hook('orders.delete');
    answering({ allow: false, message: 'Keep it' });
    await call('delete', `data/orders/${id}`).expect(403);
    answering(ALLOWED);
    await call('delete', `data/orders/${id}`).expect(200);
    await call('delete', `data/orders/${id}`).expect(404);
    await call('patch', `data/orders/${id}/recover`).expect(200);
    expect(receiver.received.map(({ event }) => (event.document as { quantity: number }).quantity)).toEqual([1, 1]);
  });

  it('is judged by schema and rules before the call', async () => {
    await hook('orders.create');
    await call('post', 'data/orders', { quantity: 0 }).expect(400);
    await call('post', 'data/orders', { quantity: 1, other: 1 }).expect(400);
    await buildCollection(test.app, owner.project, { name: 'notes', rules: { create: 'nobody' } });
    await hook('notes.create');
    await call('post', 'data/notes', {}, { 'x-api-key': owner.publishable }).expect(403);
    expect(receiver.received).toEqual([]);
  });

  it('is judged by the rules again once something is set', async () => {
    await buildCollection(test.app, owner.project, {
      name: 'notes',
      fields: [{ name: 'open', type: 'Boolean', hook: true }],
      rules: { read: 'anyone', create: 'doc.open', update: 'doc.open' },
    });
    await hook('notes.create');
    const asAnyone = { 'x-api-key': owner.publishable };
    answering({ allow: true, set: { open: false } });
    await call('post', 'data/notes', { open: true }, asAnyone).expect(403);
    answering({ allow: true, set: { open: true } });
    await call('post', 'data/notes', { open: true }, asAnyone).expect(201);
  });

  it('is not asked about again where a request is repeated, and a call has the same id until then', async () => {
    await hook('orders.create');
    const once = { 'idempotency-key': 'order-1' };
    receiver.answer = (response) => void response.writeHead(500).end();
    await call('post', 'data/orders', { quantity: 1 }, once).expect(503);
    answering({ allow: true, set: { price: 5 } });
    for (let time = 0; time < 3; time++) {
      const { body } = await call('post', 'data/orders', { quantity: 1 }, once).expect(201);
      expect(body).toMatchObject({ price: 5 });
    }
    expect(receiver.received).toHaveLength(2);
    const [first, second] = receiver.received;
    expect(first!.headers['webhook-id']).toBe(second!.headers['webhook-id']);
    expect(second!.event.idempotencyKey).toBe('order-1');
    expect(await count()).toBe(1);
  });

  it('is checked again, and not asked about again, where the document changed meanwhile', async () => {
    const id = await insert({ quantity: 1 });
    await hook('orders.update');
    receiver.answer = (response) => {
      void removeHook(test.app, owner.project, 'orders.update')
        .then(() => call('patch', `data/orders/${id}`, { note: 'meanwhile', quantity: 5 }))
        .then(() => response.writeHead(200).end('{"allow":true,"set":{"price":9}}'));
    };
    const { body } = await call('patch', `data/orders/${id}`, { $inc: { quantity: 1 } }).expect(200);
    expect((body as { data: object }).data).toMatchObject({ quantity: 6, price: 9, note: 'meanwhile' });
    expect(receiver.received).toHaveLength(1);
  });

  it('is asked about in one call with the list: bulk, batches, and what a filter matches', async () => {
    await hook('orders.create');
    answering(({ documents }) => ({
      allow: true,
      set: (documents as unknown[]).map((_, at) => (at === 0 ? null : { price: at })),
    }));
    await call('post', 'data/orders/bulk', [{ quantity: 1 }, { quantity: 2 }, { quantity: 3 }]).expect(201);
    expect(receiver.received).toHaveLength(1);
    expect((await list()).map(({ price }) => price)).toEqual([undefined, 1, 2]);

    await hook('orders.update');
    answering({ allow: true, set: [{ price: 7 }, { price: 8 }] });
    await call('patch', 'data/orders?quantity_gte=2&confirm=2', { note: 'x' }).expect(200);
    expect(receiver.received).toHaveLength(2);
    expect((receiver.received[1]!.event.documents as object[])[0]).toMatchObject({
      document: { note: 'x' },
      before: {},
    });

    answering({ allow: false, status: 409, code: 'CLOSED', message: 'Closed' });
    const refused = await call('patch', 'data/orders?quantity_gte=2&confirm=2', { note: 'y' }).expect(409);
    expect(refused.body).toMatchObject({ code: 'CLOSED' });
  });

  it('asks about all of a batch before any of it is stored', async () => {
    await hook('orders.create');
    await hook('orders.update');
    answering(({ event }) => ({ allow: true, set: event === 'orders.create' ? [{ price: 3 }] : [{ price: 4 }] }));
    const _id = 'a'.repeat(24);
    const operations = [
      { op: 'insert', collection: 'orders', body: { _id, quantity: 1 } },
      { op: 'update', collection: 'orders', id: _id, body: { quantity: 2 } },
    ];
    await call('post', 'batch', { operations }).expect(200);
    expect(receiver.received.map(({ event }) => event.event)).toEqual(['orders.create', 'orders.update']);
    expect((await call('get', `data/orders/${_id}`)).body).toMatchObject({ quantity: 2, price: 4 });
    answering(({ event }) => (event === 'orders.create' ? ALLOWED : { allow: false, status: 400 }));
    await call('post', 'batch', {
      operations: operations.map((each) => ({
        ...each,
        id: each.id && 'b'.repeat(24),
        body: { ...each.body, ...(each.op === 'insert' && { _id: 'b'.repeat(24) }) },
      })),
    }).expect(400);
    await call('get', `data/orders/${'b'.repeat(24)}`).expect(404);
  });
});

/** `{"allow":true,"set":{"ü` in another encoding: read leniently, another name than the receiver meant. */
const LATIN_1 = [...Buffer.from('{"allow":true,"set":{"'), 0xfc];
const DEEP = `{"allow":true,"set":{"price":${'['.repeat(30_000)}${']'.repeat(30_000)}}}`;

/** What a receiver may do wrong, and what the log says of it. */
const WRONG: [what: string, answer: WebhookReceiver['answer'], said: RegExp][] = [
  ['another status', (response) => void response.writeHead(201).end('{"allow":true}'), /answered 201/],
  ['a redirect', (response) => void response.writeHead(302, { location: '/' }).end(), /answered 302/],
  ['no JSON', (response) => void response.writeHead(200).end('yes'), /no JSON/],
  [
    'too much',
    (response) => void response.writeHead(200).end(`{"allow":true,"x":"${'x'.repeat(70_000)}"}`),
    /longer than 64 KiB/,
  ],
  ['what is not UTF-8', (response) => void response.writeHead(200).end(Buffer.of(...LATIN_1)), /not UTF-8 \(byte 23\)/],
  ['lists in lists', (response) => void response.writeHead(200).end(DEEP), /fit/],
  ['nothing', (response) => void response.socket!.destroy(), /connection failed/],
  ['no answer in time', () => undefined, /within 500 ms/],
  ['half an answer', (response) => void response.writeHead(200).write('{"allow"'), /within 500 ms/],
  ['no decision', (response) => void response.writeHead(200).end('{"ok":true}'), /"allow"/],
  [
    'a strange refusal',
    (response) => void response.writeHead(200).end('{"allow":false,"status":500}'),
    /refuses without/,
  ],
  ['an undeclared field', (response) => void response.writeHead(200).end('{"allow":true,"set":{"note":"x"}}'), /@hook/],
  ['a system field', (response) => void response.writeHead(200).end('{"allow":true,"set":{"_id":"x"}}'), /@hook/],
  ['a prototype', (response) => void response.writeHead(200).end('{"allow":true,"set":{"__proto__":{}}}'), /@hook/],
  [
    'a value that does not fit',
    (response) => void response.writeHead(200).end('{"allow":true,"set":{"price":2000}}'),
    /fit/,
  ],
  ['a list for one', (response) => void response.writeHead(200).end('{"allow":true,"set":[]}'), /"set" is not/],
];

describe('an upsert that own code is asked about', () => {
  const SLUG = { name: 'slug', type: 'String', unique: true } as const;
  const upsert = (body: object) => call('post', 'data/pages?upsert=slug', body);
  const asked = (): unknown[] => receiver.received.map(({ event }) => event.event);
  const pages = async (): Promise<object[]> =>
    ((await call('get', 'data/pages')).body as { data: { items: object[] } }).data.items;
  /** Answers the first call of an event once something else is done, of which own code is not asked. */
  function answeringAfter(event: string, work: () => Promise<unknown>): void {
    let isDone = false;
    receiver.answer = (response, told) => {
      const allow = (): void => void response.writeHead(200).end('{"allow":true}');
      if (isDone || told.event.event !== event) return allow();
      isDone = true;
      void work().then(allow);
    };
  }
  let collection: Collection;
  beforeEach(async () => {
    const fields = [SLUG, { name: 'n', type: 'Number' }, { name: 'price', type: 'Number', hook: true }] as const;
    collection = await buildCollection(test.app, owner.project, { name: 'pages', fields: [...fields] });
    await hook('pages.create');
    await hook('pages.update');
  });

  it('is asked about as what it comes to, and stored with what is set', async () => {
    answering(({ document }) => ({ allow: true, set: { price: (document as { n: number }).n * 2 } }));
    expect((await upsert({ slug: 'a', n: 1 }).expect(201)).body).toMatchObject({ n: 1, price: 2 });
    expect((await upsert({ slug: 'a', n: 5 }).expect(200)).body).toMatchObject({ n: 5, price: 10 });
    expect(asked()).toEqual(['pages.create', 'pages.update']);
    expect(receiver.received[1]!.event).toMatchObject({ document: { n: 5, price: 2 }, before: { n: 1, price: 2 } });
    answering({ allow: false, status: 422, code: 'CLOSED', message: 'Closed' });
    for (const slug of ['a', 'b'])
      expect((await upsert({ slug, n: 7 }).expect(422)).body).toMatchObject({ code: 'CLOSED' });
    expect(await pages()).toMatchObject([{ slug: 'a', n: 5 }]);
  });

  it('is asked about anew where it has become an update or an insert meanwhile', async () => {
    const other = { _id: new ObjectId(), slug: 'a', n: 0 };
    answeringAfter('pages.create', () => placeDocuments(test.app, collection, [other]));
    expect((await upsert({ slug: 'a', n: 1 }).expect(200)).body).toMatchObject({ _id: String(other._id), n: 1 });
    answeringAfter('pages.update', () => storedDocuments(test.app, collection).deleteOne({ _id: other._id }));
    expect((await upsert({ slug: 'a', n: 2 }).expect(201)).body).toMatchObject({ n: 2 });
    expect(asked()).toEqual(['pages.create', 'pages.update', 'pages.update', 'pages.create']);
    expect(await pages()).toMatchObject([{ slug: 'a', n: 2 }]);
  });

  it('is asked about with the others of its batch, each by what it comes to', async () => {
    await upsert({ slug: 'a', n: 0 }).expect(201);
    receiver.received = [];
    const prices = (documents: unknown): object[] =>
      (documents as { document: { n: number } }[]).map(({ document: { n } }) => ({ price: n }));
    answering(({ documents }) => ({ allow: true, set: prices(documents) }));
    const by = (slug: string, n: number) => ({ op: 'upsert', collection: 'pages', by: ['slug'], body: { slug, n } });
    await call('post', 'batch', { operations: [by('a', 1), by('b', 2), by('b', 3)] }).expect(200);
    expect(asked().sort()).toEqual(['pages.create', 'pages.update']);
    expect((await pages()).map((page) => (page as { price: number }).price).sort()).toEqual([1, 3]);
  });
});

describe('a receiver that answers with', () => {
  for (const [what, answer, said] of WRONG) {
    it(`${what} is a failure: refused, or logged and gone on without`, async () => {
      receiver.answer = answer;
      await hook('orders.create', { timeoutMs: 500 });
      const failed = await call('post', 'data/orders', { quantity: 1 }).expect(503);
      expect(failed.body).toMatchObject({ code: 'HOOK_FAILED' });
      expect(await count()).toBe(0);
      await removeHook(test.app, owner.project, 'orders.create');
      const { hook: added } = await addHook(test.app, owner.project, {
        ...{ event: 'orders.create', url: receiver.url, timeoutMs: 500, onFailure: 'allow' },
      });
      await insert({ quantity: 1 });
      await test.app.backgroundTasks.idle();
      const [logged] = await listCalls(test.app, added.id, 10);
      expect(logged).toMatchObject({ state: 'failed', event: 'orders.create' });
      expect(logged!.attempts[0]!.error).toMatch(said);
    });
  }
});

describe('the circuit of a hook', () => {
  it('opens after five failures in a row, for thirty seconds, and for its hook alone', async () => {
    await hook('orders.create');
    await hook('orders.update');
    receiver.answer = (response) => void response.writeHead(500).end();
    for (let time = 0; time < 8; time++) await call('post', 'data/orders', { quantity: 1 }).expect(503);
    expect(receiver.received).toHaveLength(5);
    answering(ALLOWED);
    await call('post', 'data/orders', { quantity: 1 }).expect(503);
    clock.advance(30_001);
    const id = await insert({ quantity: 1 });
    await call('patch', `data/orders/${id}`, { quantity: 2 }).expect(200);
    expect(receiver.received).toHaveLength(7);
  });
});

describe('a handler that calls back', () => {
  it('may write what no hook is asked about, and is refused where it would go deeper', async () => {
    await buildCollection(test.app, owner.project, { name: 'audit' });
    await hook('orders.create');
    const depth = { 'bsvc-hook-depth': '1' };
    await call('post', 'data/audit', { at: 1 }, depth).expect(201);
    const refused = await call('post', 'data/orders', { quantity: 1 }, depth).expect(400);
    expect(refused.body).toMatchObject({ code: 'HOOK_DEPTH' });
    expect(receiver.received).toEqual([]);
  });
});
