import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Webhook as Verifier } from 'standardwebhooks';
import supertest, { type Test } from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { scheduleStore, startDueRuns } from '../world/hooks.js';
import { drainJobs } from '../world/jobs.js';
import { deleteProject, updateProject } from '../world/projects.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use, useTestApp } from '../helpers/use.js';
import { openWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let owner: TestProject;

const clock = createFakeClock();
const folder = use(await openTempDir());
const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_RATE_LIMIT: 'off', BSVC_HOOKS_DIR: folder.path };
const test = await useTestApp({ settings, clock });
test.app.ownCode.serveAt(test.url);
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  owner = await buildProject(test.app);
  receiver.received = [];
  receiver.answer = (response) => void response.writeHead(200).end('done');
});

interface Planned {
  id: string;
  key: string | null;
  at: string;
  state: string;
  secret: string | null;
  lastError: string | null;
}

const ask = (method: 'get' | 'post' | 'delete', path = '', body?: object, key = owner.secret): Test =>
  supertest(test.url)[method](`/api/schedules${path}`).set('x-api-key', key).send(body);
const inMs = (ms: number): string => new Date(clock.now() + ms).toISOString();
async function plan(body: object): Promise<Planned> {
  const call = { at: inMs(HOUR), url: receiver.url, ...body };
  return ((await ask('post', '', call).expect(201)).body as { data: Planned }).data;
}
const refused = async (body: object): Promise<string> =>
  ((await ask('post', '', { at: inMs(HOUR), url: receiver.url, ...body })).body as { code: string }).code;
const count = (): Promise<number> => scheduleStore(test.app).countDocuments({ projectId: owner.project._id });

async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await startDueRuns(test.app);
  await drainJobs(test.app);
}

describe('a single call', () => {
  it('is made at its moment, signed, with its body, and is gone then', async () => {
    const { id, secret, at } = await plan({ body: { order: 7, text: '"]}' } });
    await pass(59 * MINUTE);
    expect(receiver.received).toEqual([]);
    await pass(MINUTE);
    await pass(MINUTE);
    expect(receiver.received).toHaveLength(1);
    const [{ event, headers, body }] = receiver.received as [WebhookReceiver['received'][number]];
    const told = { event: 'call', name: id, dueAt: at, isLate: false, attempt: 1 };
    expect(event).toEqual({ ...told, body: { order: 7, text: '"]}' } });
    const sent = new Date(Number(headers['webhook-timestamp']) * 1000);
    const signature = new Verifier(secret!).sign(headers['webhook-id'] as string, sent, body);
    expect(headers['webhook-signature']).toBe(signature);
    await ask('get', `/${id}`).expect(404);
    expect((await plan({})).secret).toBe(secret);
  });

  it('calls a handler of a file', async () => {
    const dir = join(folder.path, owner.project.name);
    await mkdir(dir, { recursive: true });
    const code = `export default { remind: async ({ body, dueAt, api }) => {
      if (body.order !== 7) throw new Error('another order');
      const at = new Date(Date.parse(dueAt) + 60_000);
      await api.schedule(at, { run: 'orders.mjs#remind', key: 'again', body: { order: 9 } });
    } };`;
    await writeFile(join(dir, 'orders.mjs'), code);
    const good = await plan({ url: undefined, run: 'orders.mjs#remind', body: { order: 7 } });
    const bad = await plan({ url: undefined, run: 'orders.mjs#remind', body: { order: 8 } });
    expect(good.secret).toBeNull();
    await pass(HOUR);
    await ask('get', `/${good.id}`).expect(404);
    const again = (await ask('get', '/again').expect(200)).body as { data: Planned };
    expect(Date.parse(again.data.at)).toBe(Date.parse(good.at) + MINUTE);
    expect((await ask('get', `/${bad.id}`).expect(200)).body).toMatchObject({
      data: { state: 'running', lastError: 'The handler threw: another order' },
    });
  });

  it('takes the place of the one with its key, and goes by key or id', async () => {
    const { id } = await plan({ key: 'remind/7', body: 1 });
    const moved = await plan({ key: 'remind/7', body: 2, at: inMs(2 * HOUR) });
    expect(moved).toMatchObject({ id, key: 'remind/7', state: 'waiting' });
    await plan({ key: 'other' });
    const listed = (await ask('get').expect(200)).body as { data: { items: Planned[]; total: number } };
    expect(listed.data.items.map(({ key }) => key)).toEqual(['other', 'remind/7']);
    await ask('delete', '/other').expect(200);
    await pass(HOUR);
    expect(receiver.received).toEqual([]);
    await pass(HOUR);
    expect(receiver.received.map(({ event }) => event.body)).toEqual([2]);
    const { id: third } = await plan({});
    await ask('delete', `/${third}`).expect(200);
    await ask('delete', `/${third}`).expect(404);
  });

  it('is given up after five failures, and can be put off meanwhile', async () => {
    receiver.answer = (response) => void response.writeHead(503).end('busy');
    await plan({ key: 'a', at: inMs(-DAY) });
    for (const minutes of [0, 2, 6, 34, 134, 600]) await pass(minutes * MINUTE);
    expect(receiver.received.map(({ event }) => event.attempt)).toEqual([1, 2, 3, 4, 5]);
    expect(await count()).toBe(0);
    receiver.received = [];
    await plan({ key: 'b', at: inMs(0) });
    await pass(0);
    await plan({ key: 'b', at: inMs(HOUR) });
    await pass(30 * MINUTE);
    expect(receiver.received).toHaveLength(1);
    await pass(30 * MINUTE);
    expect(receiver.received.map(({ event }) => event.attempt)).toEqual([1, 1]);
  });

  it('is for the secret key alone, and of its own project', async () => {
    await plan({ key: 'mine' });
    await ask('get', '/mine', undefined, owner.publishable).expect(403);
    const other = await buildProject(test.app);
    await ask('get', '/mine', undefined, other.secret).expect(404);
    await ask('delete', '/mine', undefined, other.secret).expect(404);
  });

  it.each([
    [{ at: '2027-09-01T00:00:00.000Z' }, 'INVALID_SCHEDULE'],
    [{ at: 'tomorrow' }, 'INVALID_SCHEDULE'],
    [{ at: '7' }, 'INVALID_SCHEDULE'],
    [{ at: '+275760-09-14T00:00:00.000Z' }, 'INVALID_SCHEDULE'],
    [{ body: 'x'.repeat(65 * 1024) }, 'INVALID_SCHEDULE'],
    [{ key: '' }, 'VALIDATION_FAILED'],
    [{ key: 'k'.repeat(201) }, 'VALIDATION_FAILED'],
    [{ url: 'javascript:alert(1)' }, 'INVALID_URL'],
    [{ run: 'a.mjs#b' }, 'INVALID_HOOK'],
    [{ url: undefined }, 'INVALID_HOOK'],
    [{ url: undefined, run: '/etc/a.mjs#b' }, 'VALIDATION_FAILED'],
    [{ url: undefined, run: '../a.mjs#b' }, 'VALIDATION_FAILED'],
    [{ url: undefined, run: 'a.mjs' }, 'INVALID_HOOK'],
  ])('is refused with %j', async (body, code) => {
    expect(await refused(body)).toBe(code);
    expect(await count()).toBe(0);
  });

  it('is refused where the project has no room', async () => {
    await updateProject(test.app, owner.project._id.toHexString(), { limits: { database: 100_000 } });
    const outcomes = [];
    for (let index = 0; index < 3; index++) outcomes.push(await refused({ body: 'x'.repeat(60_000) }));
    expect(outcomes).toEqual([undefined, 'QUOTA_EXCEEDED', 'QUOTA_EXCEEDED']);
  });

  it('goes with its project', async () => {
    const { id } = await plan({ body: 'x'.repeat(60_000) });
    expect(await count()).toBe(1);
    await deleteProject(test.app, owner.project._id.toHexString());
    expect(await count()).toBe(0);
    await pass(HOUR);
    expect(receiver.received.map(({ event }) => event.name)).not.toContain(id);
  });

  it('waits its turn: nobody’s many calls hold up others', async () => {
    const busy = owner;
    const planned: string[] = [];
    for (let index = 0; index < 250; index += 50) {
      const made = await Promise.all(Array.from({ length: 50 }, () => plan({ at: inMs(HOUR - 1) })));
      planned.push(...made.map(({ id }) => id));
    }
    owner = await buildProject(test.app);
    const { id } = await plan({});
    await pass(HOUR);
    const place = receiver.received.findIndex(({ event }) => event.name === id);
    expect(place).toBeGreaterThanOrEqual(0);
    expect(place).toBeLessThan(60);
    while ((await scheduleStore(test.app).countDocuments({ projectId: busy.project._id })) > 0) await pass(1_000);
    const names = receiver.received.map(({ event }) => event.name);
    expect(planned.every((each) => names.filter((name) => name === each).length === 1)).toBe(true);
  });
});
