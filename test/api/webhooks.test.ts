import supertest from 'supertest';
import { Webhook as SvixWebhook } from 'svix';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { removeOldDeliveriesJob, sweepWebhooksJob } from '../world/jobs.js';
import { updateProject } from '../world/projects.js';
import { projectStore, webhookStore } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { listAllDeliveries, settleWebhooks } from '../helpers/build-webhook.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { use, useTestApp } from '../helpers/use.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';

const TOKEN = 'operator-token-for-tests';
const HOUR = 3_600_000;
const job = { signal: new AbortController().signal, stopping: new AbortController().signal } as never;

let owner: TestProject;

const clock = createFakeClock();
const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_ADMIN_TOKEN: TOKEN, BSVC_RATE_LIMIT: 'off' };
const test = await useTestApp({ settings, clock });
const receiver = use(await openWebhookReceiver());

beforeEach(async () => {
  receiver.received = [];
  receiver.answer = (response) => void response.writeHead(200).end('ok');
  owner = await buildProject(test.app);
});

const path = (rest = '', project = owner.project._id.toHexString()) => `/api/projects/${project}/webhooks${rest}`;

function call(method: 'get' | 'post' | 'patch' | 'delete', address: string, body?: object) {
  return supertest(test.url)[method](address).set('authorization', `Bearer ${TOKEN}`).send(body);
}

async function create(body: object = {}): Promise<{ id: string; secret: string }> {
  const answer = await call('post', path(), { url: receiver.url, events: ['*'], ...body }).expect(201);
  return (answer.body as { data: { id: string; secret: string } }).data;
}

describe('/api/projects/:projectId/webhooks', () => {
  it('answers 401 without an operator’s token, and with another one', async () => {
    const missing = await supertest(test.url).get(path()).expect(401);
    expect(missing.body).toMatchObject({ success: false, code: 'AUTH_REQUIRED' });
    for (const value of ['Bearer wrong', 'Basic abc', `Bearer ${TOKEN}x`, `Bearer ${owner.secret}`]) {
      const answer = await supertest(test.url).get(path()).set('authorization', value).expect(401);
      expect(answer.body).toMatchObject({ code: 'TOKEN_INVALID' });
    }
  });

  it('answers 404 for an unknown project, one named instead of given by id, and one that is being deleted', async () => {
    const gone = await buildProject(test.app);
    await projectStore(test.app).updateOne({ _id: gone.project._id }, { $set: { state: 'deleting' } });
    for (const project of ['0123456789abcdef01234567', encodeURIComponent(owner.project.name), gone.project._id]) {
      const answer = await call('get', path('', String(project))).expect(404);
      expect(answer.body).toMatchObject({ code: 'PROJECT_NOT_FOUND' });
    }
  });

  it('answers 405 with Allow for another method', async () => {
    const answer = await call('delete', path()).expect(405);
    expect(answer.headers.allow).toBe('GET, HEAD, OPTIONS, POST');
  });
});

describe('POST /api/projects/:projectId/webhooks', () => {
  it('registers a webhook that gets nothing until it is enabled', async () => {
    const { id } = await create({ enabled: false });
    const shown = await call('get', path(`/${id}`)).expect(200);
    expect((shown.body as { data: object }).data).toMatchObject({ enabled: false, disabledReason: 'requested' });
  });

  it('registers a webhook and shows its secret this once', async () => {
    const created = await call('post', path(), { url: receiver.url, events: ['posts.insert'], description: 'search' });
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      success: true,
      data: {
        id: expect.stringMatching(/^[0-9a-f]{24}$/),
        url: receiver.url,
        headers: [],
        events: ['posts.insert'],
        description: 'search',
        enabled: true,
        disabledReason: null,
        keepsWaiting: false,
        failingSince: null,
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      },
      message: expect.any(String),
    });
    const { secret, ...shown } = (created.body as { data: { id: string; secret: string } }).data;
    const list = await call('get', path()).expect(200);
    expect(list.body).toMatchObject({ data: { items: [shown], total: 1 } });
    const one = await call('get', path(`/${shown.id}`)).expect(200);
    expect(one.body).toMatchObject({ data: shown });
    expect(list.text + one.text).not.toContain(secret);
    const stored = await webhookStore(test.app).findOne({ _id: owner.project._id });
    expect(JSON.stringify(stored)).not.toContain(secret.slice(6));
  });

  it('refuses an event of a collection that is not there, where that is asked for', async () => {
    await buildCollection(test.app, owner.project, { name: 'posts' });
    const strict = { url: receiver.url, strict: true };
    const refused = await call('post', path(), { ...strict, events: ['*.insert', 'psots.insert'] }).expect(400);
    expect(refused.body).toMatchObject({
      code: 'INVALID_EVENTS',
      message: 'There is no collection "psots" in this project',
    });
    await call('post', path(), { ...strict, events: ['posts.insert', 'users.*', '*'] }).expect(201);
  });

  it.each([
    ['no url', { url: undefined }],
    ['something that is no address', { url: 'nowhere' }],
    ['another protocol', { url: 'ftp://example.com/' }],
    ['a password in the address', { url: 'https://user:pass@example.com/' }],
    ['no events', { events: [] }],
    ['events that are no list', { events: 'posts.insert' }],
    ['an unknown action', { events: ['posts.read'] }],
    ['a collection alone', { events: ['posts'] }],
    ['an operator as an event', { events: [{ $ne: 1 }] }],
    ['an unknown field', { secret: 'mine' }],
    ['a prototype key', JSON.parse('{"__proto__":{"url":"x"},"constructor":1}') as object],
    ['a description that is too long', { description: 'x'.repeat(201) }],
  ])('answers 400 for %s', async (_what, change) => {
    const answer = await call('post', path(), { url: receiver.url, events: ['*'], ...change }).expect(400);
    expect(answer.body).toMatchObject({ success: false, message: expect.any(String) });
    expect((await call('get', path())).body).toMatchObject({ data: { total: 0 } });
  });

  it('answers 403 "Webhook limit reached" for the fourth of the Free plan; the others can still be edited, tested and deleted', async () => {
    const first = await create();
    await create();
    await create();
    const refused = await call('post', path(), { url: receiver.url, events: ['*'] }).expect(403);
    expect(refused.body).toMatchObject({ success: false, message: 'Webhook limit reached', code: 'WEBHOOK_LIMIT' });
    await call('patch', path(`/${first.id}`), { description: 'edited' }).expect(200);
    await call('post', path(`/${first.id}/test`)).expect(200);
    await call('delete', path(`/${first.id}`)).expect(200);
    await create();
  });

  it('never exceeds the limit, however many are created at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => call('post', path(), { url: receiver.url, events: ['*'] })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(17);
    expect((await call('get', path())).body).toMatchObject({ data: { total: 3 } });
  });

  it('allows any number on the Pro plan, and as many as the project’s own limit says', async () => {
    await updateProject(test.app, owner.project.name, { plan: 'pro' });
    for (let n = 0; n < 5; n++) await create();
    await updateProject(test.app, owner.project.name, { limits: { webhooks: 6 } });
    await create();
    await call('post', path(), { url: receiver.url, events: ['*'] }).expect(403);
  });
});

describe('PATCH /api/projects/:projectId/webhooks/:id', () => {
  it('changes what is given and keeps the rest', async () => {
    const { id } = await create({ events: ['posts.insert'], description: 'a' });
    const changed = await call('patch', path(`/${id}`), { events: ['posts.*', 'posts.*'], enabled: false }).expect(200);
    expect(changed.body).toMatchObject({
      data: {
        id,
        url: receiver.url,
        events: ['posts.*'],
        description: 'a',
        enabled: false,
        disabledReason: 'requested',
      },
    });
    await call('patch', path(`/${id}`), {}).expect(400);
    await call('patch', path(`/${id}`), { enabled: 'yes' }).expect(400);
  });

  it('keeps what waits for one that is disabled, where that is asked for, until it is enabled again', async () => {
    await buildCollection(test.app, owner.project, { name: 'posts' });
    receiver.answer = (response) => void response.writeHead(500).end();
    const { id } = await create();
    const post = async (): Promise<string> =>
      (
        (await supertest(test.url).post('/api/data/posts').set('x-api-key', owner.secret).send({})).body as {
          _id: string;
        }
      )._id;
    const counts = async (): Promise<object> => {
      await settleWebhooks(test.app);
      return ((await call('get', path(`/${id}/counts`))).body as { data: object }).data;
    };
    const edit = (body: object) => call('patch', path(`/${id}`), body);
    const kept = await post();
    expect(await counts()).toMatchObject({ pending: 1, failed: 0 });
    await edit({ waiting: 'keep' }).expect(400);
    await edit({ enabled: true, waiting: 'keep' }).expect(400);
    expect((await edit({ enabled: false, waiting: 'keep' }).expect(200)).body).toMatchObject({
      data: { enabled: false, keepsWaiting: true },
    });
    await post();
    // A change of something else, the next attempt's time, and the sweep.
    await edit({ description: 'later' }).expect(200);
    clock.advance(HOUR);
    await sweepWebhooksJob.run(test.app, {}, job);
    expect(await counts()).toMatchObject({ pending: 1, failed: 0 });
    receiver.answer = (response) => void response.writeHead(200).end();
    receiver.received = [];
    expect((await edit({ enabled: true }).expect(200)).body).toMatchObject({ data: { keepsWaiting: false } });
    expect(await counts()).toMatchObject({ pending: 0, delivered: 1 });
    expect(receiver.received.map(({ event }) => event.documentId)).toEqual([kept]);

    receiver.answer = (response) => void response.writeHead(500).end();
    await post();
    expect(await counts()).toMatchObject({ pending: 1 });
    await edit({ enabled: false, waiting: 'keep' }).expect(200);
    const states = async (days: number): Promise<string[]> => {
      for (let day = 0; day < days; day++) {
        // A clock that leaps is not believed.
        clock.advance(24 * HOUR);
        await removeOldDeliveriesJob.run(test.app, {}, job);
      }
      return (await listAllDeliveries(test.app)).map(({ state }) => state);
    };
    expect(await states(29)).toContain('pending');
    expect(await states(2)).not.toContain('pending');
  });

  it('answers 404 for a webhook of another project', async () => {
    const { id } = await create();
    const stranger = (await buildProject(test.app)).project._id.toHexString();
    for (const answer of [
      await call('get', path(`/${id}`, stranger)),
      await call('patch', path(`/${id}`, stranger), { description: 'x' }),
      await call('delete', path(`/${id}`, stranger)),
      await call('post', path(`/${id}/test`, stranger)),
      await call('post', path(`/${id}/rotate-secret`, stranger)),
      await call('get', path(`/${id}/deliveries`, stranger)),
      await call('post', path(`/${id}/deliveries/evt_1.${id}/replay`, stranger)),
      await call('get', path('/nonsense')),
    ]) {
      expect(answer.status).toBe(404);
      expect(answer.body).toMatchObject({ code: 'WEBHOOK_NOT_FOUND' });
    }
  });
});

describe('POST /api/projects/:projectId/webhooks/:id/test', () => {
  it('sends test.ping at once and answers the outcome', async () => {
    const { id } = await create();
    const good = await call('post', path(`/${id}/test`)).expect(200);
    expect(good.body).toMatchObject({ data: { event: 'test.ping', state: 'delivered', attempts: [{ status: 200 }] } });
    expect(receiver.received[0]!.event).toMatchObject({ event: 'test.ping', data: { webhookId: id } });
    receiver.answer = (response) => void response.writeHead(500).end('no');
    const bad = await call('post', path(`/${id}/test`)).expect(200);
    expect(bad.body).toMatchObject({
      data: { state: 'failed', attempts: [{ status: 500, response: 'no', error: 'The receiver answered 500.' }] },
    });
  });
});

describe('GET /api/projects/:projectId/webhooks/:id/deliveries', () => {
  it('lists them newest first, by state and in pages, and replays one', async () => {
    const posts = await buildCollection(test.app, owner.project, { name: 'posts' });
    const { id } = await create();
    for (let n = 0; n < 5; n++) {
      await supertest(test.url).post(`/api/data/${posts.name}`).set('x-api-key', owner.secret).send({ n }).expect(201);
      await settleWebhooks(test.app);
      clock.advance(10);
    }
    const all = await call('get', path(`/${id}/deliveries`)).expect(200);
    const { items, next } = (all.body as { data: { items: { id: string; createdAt: string }[]; next: null } }).data;
    expect(items).toHaveLength(5);
    expect(next).toBeNull();
    expect(items.map(({ createdAt }) => createdAt)).toEqual(
      items
        .map(({ createdAt }) => createdAt)
        .sort()
        .reverse(),
    );
    const first = await call('get', path(`/${id}/deliveries?limit=2&state=delivered`)).expect(200);
    expect(first.body).toMatchObject({ data: { items: items.slice(0, 2), next: items[1]!.id } });
    const second = await call('get', path(`/${id}/deliveries?limit=3&before=${items[1]!.id}`)).expect(200);
    expect(second.body).toMatchObject({ data: { items: items.slice(2), next: null } });
    for (const bad of ['limit=0', 'limit=101', 'limit=x', 'state=odd', 'before=nothing', 'state=a&state=b']) {
      await call('get', path(`/${id}/deliveries?${bad}`)).expect(400);
    }
    const replayed = await call('post', path(`/${id}/deliveries/${items[4]!.id}/replay`)).expect(202);
    expect(replayed.body).toMatchObject({ data: { id: items[4]!.id, state: 'pending' } });
    await settleWebhooks(test.app);
    expect(receiver.received).toHaveLength(6);
    expect(receiver.received[5]!.headers['webhook-id']).toBe(receiver.received[0]!.headers['webhook-id']);
    await call('post', path(`/${id}/deliveries/evt_none.${id}/replay`)).expect(404);
  });
});

describe('the signature of a delivery', () => {
  /** What the independent verifier, at the service's time, says to the last delivery, with some part exchanged. */
  const accepts = (secret: string, change: { body?: string; headers?: Record<string, string> } = {}): boolean => {
    const { headers, body } = receiver.received.at(-1)!;
    const pick = (name: string) => String(headers[name]);
    const signed = {
      'webhook-id': pick('webhook-id'),
      'webhook-timestamp': pick('webhook-timestamp'),
      'webhook-signature': pick('webhook-signature'),
      ...change.headers,
    };
    vi.useFakeTimers({ toFake: ['Date'], now: clock.now() });
    try {
      new SvixWebhook(secret).verify(change.body ?? body, signed);
      return true;
    } catch {
      return false;
    } finally {
      vi.useRealTimers();
    }
  };
  const ping = (id: string) => call('post', path(`/${id}/test`)).expect(200);

  it('is accepted by svix, and refused with a flipped byte, another id, another secret or an old timestamp', async () => {
    const { id, secret } = await create();
    await ping(id);
    const { body, headers } = receiver.received.at(-1)!;
    expect(accepts(secret)).toBe(true);
    expect(accepts(secret, { body: body.replace('test.ping', 'test.pong') })).toBe(false);
    expect(accepts(secret, { headers: { 'webhook-id': 'evt_other' } })).toBe(false);
    expect(accepts(`whsec_${Buffer.alloc(32, 7).toString('base64')}`)).toBe(false);
    const later = String(Number(headers['webhook-timestamp']) + 1);
    expect(accepts(secret, { headers: { 'webhook-timestamp': later } })).toBe(false);
    clock.advance(6 * 60_000);
    expect(accepts(secret)).toBe(false);
  });

  it('is made with the old and the new secret for 24 hours after a rotation, then with the new one only', async () => {
    const { id, secret: old } = await create();
    const rotated = await call('post', path(`/${id}/rotate-secret`)).expect(200);
    const { secret, previousSecretExpiresAt } = (
      rotated.body as { data: { secret: string; previousSecretExpiresAt: string } }
    ).data;
    expect(Date.parse(previousSecretExpiresAt)).toBe(clock.now() + 24 * HOUR);
    await ping(id);
    expect([accepts(old), accepts(secret)]).toEqual([true, true]);
    clock.advance(24 * HOUR);
    await ping(id);
    expect([accepts(old), accepts(secret)]).toEqual([false, true]);
  });
});
