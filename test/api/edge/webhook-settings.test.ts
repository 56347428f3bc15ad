import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { updateProject } from '../../world/projects.js';
import { webhookStore } from '../../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { settleWebhooks } from '../../helpers/build-webhook.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { use, useTestApp } from '../../helpers/use.js';
import { openWebhookReceiver } from '../../helpers/webhook-receiver.js';

const TOKEN = 'operator-token-for-tests';
const HOUR = 3_600_000;

interface Shown {
  id: string;
  url: string;
  events: string[];
  secret: string;
}

let owner: TestProject;

const clock = createFakeClock();
const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_ADMIN_TOKEN: TOKEN, BSVC_RATE_LIMIT: 'off' };
const test = await useTestApp({ settings, clock });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  await settleWebhooks(test.app);
  receiver.received = [];
  receiver.answer = (response) => void response.writeHead(200).end('ok');
  owner = await buildProject(test.app);
});

const call = (method: 'get' | 'post' | 'patch' | 'delete', path = '', body?: object) =>
  supertest(test.url)
    [method](`/api/projects/${owner.project._id.toHexString()}/webhooks${path}`)
    .set('authorization', `Bearer ${TOKEN}`)
    .send(body);
const dataOf = <T>(answer: { body: unknown }): T => (answer.body as { data: T }).data;
const add = async (body: object = {}): Promise<Shown> =>
  dataOf<Shown>(await call('post', '', { url: receiver.url, events: ['*'], ...body }).expect(201));
const write = (method: 'post' | 'patch' | 'delete', path: string, body?: object) =>
  supertest(test.url)[method](`/api/data/${path}`).set('x-api-key', owner.secret).send(body);
const insert = async (collection: string): Promise<string> =>
  ((await write('post', collection, {}).expect(201)).body as { _id: string })._id;

describe('the headers of a webhook', () => {
  it('are sent with each delivery and replaced by an edit; their values are shown nowhere', async () => {
    const value = 'Bearer s3cret-of-the-receiver';
    const { id } = await add({ headers: { Authorization: value, 'X-Team': 'blue' } });
    await call('post', `/${id}/test`).expect(200);
    expect(receiver.received[0]!.headers).toMatchObject({ authorization: value, 'x-team': 'blue' });
    const shown = await call('get', `/${id}`).expect(200);
    expect(dataOf<{ headers: string[] }>(shown).headers).toEqual(['Authorization', 'X-Team']);
    await call('patch', `/${id}`, { headers: { 'X-Other': 'green' } }).expect(200);
    await call('post', `/${id}/test`).expect(200);
    expect(receiver.received[1]!.headers).toMatchObject({ 'x-other': 'green' });
    expect(receiver.received[1]!.headers.authorization).toBeUndefined();
    await call('patch', `/${id}`, { headers: {} }).expect(200);
    const stored = await Promise.all(
      ['project_webhooks', 'audit_log'].map((name) => test.app.db.collection(name).find({}).toArray()),
    );
    expect(JSON.stringify([stored, (await call('get')).body])).not.toContain('s3cret');
  });

  it.each([
    ['a name that is none', { 'a b': 'x' }],
    ['a line end', { 'X-A': 'x\r\nY: 1' }],
    ['another script', { 'X-A': 'ü' }],
    ['blanks at an end', { 'X-A': ' x' }],
    ['the host', { Host: 'elsewhere.example' }],
    ['the length', { 'content-length': '1' }],
    ['the signature', { 'Webhook-Signature': 'v1,x' }],
    ['one name twice', { 'X-A': '1', 'x-a': '2' }],
  ])('are refused for %s', async (_name, headers) => {
    const refused = await call('post', '', { url: receiver.url, events: ['*'], headers }).expect(400);
    expect(refused.body).toMatchObject({ code: 'INVALID_HEADERS' });
    const { id } = await add();
    expect((await call('patch', `/${id}`, { headers })).status).toBe(400);
  });

  it('and the address are in no record or audit entry as they are, only encrypted', async () => {
    const url = `${receiver.url}services/T0KEN-in-path?key=T0KEN-in-query`;
    const { id } = await add({ url });
    await call('patch', `/${id}`, { url: `${url}&more=1` }).expect(200);
    await call('post', `/${id}/test`).expect(200);
    const names = (await test.app.db.listNames()).filter((name) => !name.startsWith('documents_'));
    const records = await Promise.all(names.map((name) => test.app.db.collection(name).find({}).toArray()));
    expect(JSON.stringify(records)).not.toContain('T0KEN');
  });
});

describe('the port of a webhook', () => {
  it('is none of another well-known service', async () => {
    const closed = await useTestApp({ settings: { BSVC_ADMIN_TOKEN: TOKEN } });
    const { project } = await buildProject(closed.app);
    const register = (port: number) =>
      supertest(closed.url)
        .post(`/api/projects/${project._id.toHexString()}/webhooks`)
        .set('authorization', `Bearer ${TOKEN}`)
        .send({ url: `https://93.184.216.34:${port}/`, events: ['*'] });
    for (const port of [22, 25, 6379, 27017]) {
      expect((await register(port).expect(400)).body).toMatchObject({ code: 'PORT_NOT_ALLOWED' });
    }
    for (const port of [443, 8443]) await register(port).expect(201);
  });
});

describe('the address of a webhook', () => {
  it('is kept in its normal form, without its fragment', async () => {
    const { id, url } = await add({ url: `${receiver.url.replace('http:', 'HTTP:')}?a=1#part` });
    expect(url).toBe(`${receiver.url}?a=1`);
    await call('post', `/${id}/test`).expect(200);
    expect(receiver.received).toHaveLength(1);
  });

  it('has at most 2048 characters', async () => {
    const long = (characters: number): string => `${receiver.url}?`.padEnd(characters, 'x');
    expect((await add({ url: long(2_048) })).url).toHaveLength(2_048);
    const refused = await call('post', '', { url: long(2_049), events: ['*'] }).expect(400);
    expect(refused.body).toMatchObject({ code: 'INVALID_URL' });
  });

  it.each(['http://user@example.com/', 'http://:secret@example.com/', 'ftp://example.com/', 'example.com'])(
    'is not %s, in a new webhook or later',
    async (url) => {
      expect((await call('post', '', { url, events: ['*'] }).expect(400)).body).toMatchObject({ code: 'INVALID_URL' });
      const { id } = await add();
      expect((await call('patch', `/${id}`, { url }).expect(400)).body).toMatchObject({ code: 'INVALID_URL' });
      expect(dataOf(await call('get', `/${id}`).expect(200))).toMatchObject({ url: receiver.url });
    },
  );

  it('may be another one: what waits goes there', async () => {
    await buildCollection(test.app, owner.project, { name: 'posts' });
    receiver.answer = (response) => void response.writeHead(503).end();
    const { id } = await add();
    const documentId = await insert('posts');
    await settleWebhooks(test.app);
    const moved = use(await openWebhookReceiver());
    await call('patch', `/${id}`, { url: moved.url }).expect(200);
    clock.advance(6_000);
    await settleWebhooks(test.app);
    expect([receiver.actionsOf(documentId), moved.actionsOf(documentId)]).toEqual([['insert'], ['insert']]);
  });
});

describe('the events of a webhook', () => {
  const longest = `a${'b'.repeat(63)}`;

  it('are 1 to 100, each once', async () => {
    const events = Array.from({ length: 100 }, (_, n) => `things${n}.insert`);
    expect((await add({ events })).events).toEqual(events);
    expect((await add({ events: ['a.*', '*.insert', 'a.*'] })).events).toEqual(['a.*', '*.insert']);
    await call('post', '', { url: receiver.url, events: [...events, '*'] }).expect(400);
    await call('post', '', { url: receiver.url, events: [] }).expect(400);
  });

  it.each(['*', '*.*', 'posts.*', '*.recover', `${longest}.delete`, 'A_-9.update'])('may be %s', async (event) => {
    expect((await add({ events: [event] })).events).toEqual([event]);
  });

  it.each(['', 'posts', 'posts.', '.insert', '9posts.insert', '_posts.insert', `${longest}c.insert`, 'posts.inserted'])(
    'may not be %j',
    async (event) => {
      const refused = await call('post', '', { url: receiver.url, events: ['*', event] }).expect(400);
      expect(refused.body).toMatchObject({ code: 'INVALID_EVENTS' });
    },
  );

  it.each([
    ['*', ['posts.insert', 'posts.update', 'notes.insert', 'notes.update']],
    ['*.*', ['posts.insert', 'posts.update', 'notes.insert', 'notes.update']],
    ['posts.*', ['posts.insert', 'posts.update']],
    ['*.update', ['posts.update', 'notes.update']],
    ['notes.insert', ['notes.insert']],
    ['post.insert', []],
  ])('%s are those that are sent', async (event, expected) => {
    await add({ events: [event] });
    for (const name of ['posts', 'notes']) {
      await buildCollection(test.app, owner.project, { name });
      await write('patch', `${name}/${await insert(name)}`, { n: 1 }).expect(200);
    }
    await settleWebhooks(test.app);
    expect(receiver.received.map((received) => received.event.event).sort()).toEqual([...expected].sort());
  });

  it('may be other ones: these count from then on', async () => {
    await buildCollection(test.app, owner.project, { name: 'posts' });
    const { id } = await add({ events: ['posts.update'] });
    await insert('posts');
    await call('patch', `/${id}`, { events: ['posts.insert'] }).expect(200);
    const told = await insert('posts');
    await settleWebhooks(test.app);
    expect(receiver.received.map(({ event }) => event.documentId)).toEqual([told]);
  });
});

describe('a description', () => {
  it('has at most 200 characters, in a new webhook and later', async () => {
    const [longest, longer] = ['x'.repeat(200), 'x'.repeat(201)];
    const { id } = await add({ description: longest });
    await call('post', '', { url: receiver.url, events: ['*'], description: longer }).expect(400);
    await call('patch', `/${id}`, { description: longer }).expect(400);
    expect(dataOf(await call('get', `/${id}`).expect(200))).toMatchObject({ description: longest });
    await call('patch', `/${id}`, { description: '' }).expect(200);
    expect(dataOf(await call('get', `/${id}`).expect(200))).toMatchObject({ description: '' });
  });
});

describe('a webhook', () => {
  it('is found by its id in upper case too, and alone by it', async () => {
    const [first, second] = [await add({ description: 'first' }), await add({ description: 'second' })];
    const id = first.id.toUpperCase();
    expect(dataOf(await call('get', `/${id}`).expect(200))).toMatchObject({ description: 'first' });
    await call('patch', `/${id}`, { description: 'changed' }).expect(200);
    await call('post', `/${id}/rotate-secret`).expect(200);
    expect(dataOf(await call('delete', `/${id}`).expect(200))).toEqual({ id: first.id });
    const { items } = dataOf<{ items: Shown[] }>(await call('get').expect(200));
    expect(items).toMatchObject([{ id: second.id, description: 'second' }]);
    for (const gone of [first.id, 'x']) {
      expect((await call('delete', `/${gone}`).expect(404)).body).toMatchObject({ code: 'WEBHOOK_NOT_FOUND' });
      await call('patch', `/${gone}`, { description: 'x' }).expect(404);
    }
  });

  it('is listed after those that were there before it', async () => {
    const ids = [(await add()).id, (await add()).id, (await add()).id];
    const { items } = dataOf<{ items: Shown[] }>(await call('get').expect(200));
    expect(items.map(({ id }) => id)).toEqual(ids);
  });

  it('keeps all of several changes that are made at once', async () => {
    const { id } = await add();
    const changes = [
      { description: 'a' },
      { events: ['posts.insert'] },
      { url: `${receiver.url}/b` },
      { enabled: false },
    ];
    await Promise.all(changes.map((change) => call('patch', `/${id}`, change).expect(200)));
    expect(dataOf(await call('get', `/${id}`).expect(200))).toMatchObject({
      ...Object.assign({}, ...changes.slice(0, 3)),
      enabled: false,
    });
  });

  it('is told when it was changed, and begins anew when it is enabled', async () => {
    await buildCollection(test.app, owner.project, { name: 'posts' });
    receiver.answer = (response) => void response.writeHead(500).end();
    const created = await add();
    clock.advance(1_000);
    await insert('posts');
    await settleWebhooks(test.app);
    const failing = new Date(clock.now()).toISOString();
    expect(dataOf(await call('get', `/${created.id}`).expect(200))).toMatchObject({ failingSince: failing });
    clock.advance(1_000);
    await call('patch', `/${created.id}`, { description: 'a' }).expect(200);
    const { secret: _secret, ...rest } = created;
    const updatedAt = new Date(clock.now()).toISOString();
    const expected = { ...rest, description: 'a', failingSince: failing, updatedAt };
    expect(dataOf(await call('get', `/${created.id}`).expect(200))).toEqual(expected);
    const enabled = dataOf(await call('patch', `/${created.id}`, { enabled: true }).expect(200));
    expect(enabled).toEqual({ ...expected, failingSince: null });
  });

  it('gives up what waits when it is disabled, unless that is to be kept', async () => {
    await buildCollection(test.app, owner.project, { name: 'posts' });
    receiver.answer = (response) => void response.writeHead(500).end();
    const ids = [(await add()).id, (await add()).id, (await add()).id];
    await insert('posts');
    await settleWebhooks(test.app);
    await call('patch', `/${ids[0]!}`, { enabled: false }).expect(200);
    await call('patch', `/${ids[1]!}`, { enabled: false, waiting: 'drop' }).expect(200);
    await call('patch', `/${ids[2]!}`, { enabled: false, waiting: 'keep' }).expect(200);
    const counts = await Promise.all(ids.map(async (id) => dataOf(await call('get', `/${id}/counts`).expect(200))));
    expect(counts).toEqual([
      { pending: 0, delivered: 0, failed: 1 },
      { pending: 0, delivered: 0, failed: 1 },
      { pending: 1, delivered: 0, failed: 0 },
    ]);
  });

  it('is one of a thousand at most, whatever the project may have', async () => {
    owner.project = await updateProject(test.app, owner.project.name, { plan: 'pro' });
    await add();
    const record = (await webhookStore(test.app).findOne({ _id: owner.project._id }))!;
    const webhooks = Array.from({ length: 999 }, () => record.webhooks[0]!);
    await webhookStore(test.app).updateOne({ _id: owner.project._id }, { $set: { webhooks } });
    await add();
    const refused = await call('post', '', { url: receiver.url, events: ['*'] }).expect(403);
    expect(refused.body).toMatchObject({ code: 'WEBHOOK_LIMIT' });
  });
});

describe('the secrets of a webhook', () => {
  const live = async (): Promise<(string | null)[]> => {
    const { webhooks } = (await webhookStore(test.app).findOne({ _id: owner.project._id }))!;
    return webhooks[0]!.secrets.map(({ expiresAt }) => expiresAt?.toISOString() ?? null);
  };
  const signatures = async (id: string): Promise<number> => {
    await call('post', `/${id}/test`).expect(200);
    return String(receiver.received.at(-1)!.headers['webhook-signature']).split(' ').length;
  };

  it('sign for a day after their rotation, and for no longer after another one', async () => {
    const { id } = await add();
    const rotate = async (): Promise<string> =>
      dataOf<{ previousSecretExpiresAt: string }>(await call('post', `/${id}/rotate-secret`).expect(200))
        .previousSecretExpiresAt;
    const first = await rotate();
    clock.advance(HOUR);
    const second = await rotate();
    expect(await live()).toEqual([null, second, first]);
    expect(await signatures(id)).toBe(3);
    clock.advance(23 * HOUR - 1);
    expect(await signatures(id)).toBe(3);
    clock.advance(1);
    expect(await signatures(id)).toBe(2);
    // What signs no longer is not kept.
    const third = await rotate();
    expect(await live()).toEqual([null, third, second]);
    expect(await signatures(id)).toBe(3);
  });
});
