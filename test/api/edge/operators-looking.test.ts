import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { startSeries, FIGURES, openRing, type Sample } from '../../world/operators.js';
import { addWebhook, testWebhook } from '../../world/projects.js';
import { jobStore } from '../../world/stored.js';
import { buildCollection, buildProject, placeDocuments } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { buildOperator, type OperatorClient } from '../../helpers/operator-client.js';
import { openStorageClient } from '../../helpers/storage-client.js';
import { use, useTestApp } from '../../helpers/use.js';

const MINUTE_MS = 60_000;

let call: OperatorClient;

const clock = createFakeClock(Date.UTC(2026, 10, 22, 9, 0, 5));
const settings = { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' };
const test = await useTestApp({ settings, clock });
// Their tokens end when the clock is moved.
beforeEach(async () => {
  ({ call } = await buildOperator(test));
});

const dataOf = <T = Record<string, unknown>>({ body }: { body: unknown }): T => (body as { data: T }).data;
const codeOf = ({ body }: { body: unknown }) => (body as { code?: string }).code;
const get = async <T>(path: string): Promise<T> => dataOf<T>(await call('get', path).expect(200));

interface SeriesAnswer {
  from: string;
  stepMs: number;
  series: Record<string, (number | null)[]>;
}

describe('a ring of samples', () => {
  const STEP_MS = 10_000;
  const LENGTH = 6;
  const START_MS = Date.UTC(2026, 10, 22, 9);
  const sample = (value: number) => Object.fromEntries(FIGURES.map((name) => [name, value])) as Sample;
  /** What a ring shows at the end of samples at these steps, each worth its place in the list. */
  const shows = (...steps: number[]) => {
    const ring = openRing(STEP_MS, LENGTH);
    steps.forEach((step, at) => ring.put(sample(at), START_MS + step * STEP_MS));
    return ring.read(START_MS + steps.at(-1)! * STEP_MS).values.inFlight;
  };

  it.each([
    ['steps on', [0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]],
    ['leaves some out', [0, 1, 4], [null, 0, 1, null, null, 2]],
    ['is away for longer than the ring', [0, 1, 40], [null, null, null, null, null, 2]],
    ['is set back a little', [0, 1, 2, 1], [null, null, null, null, 0, 3]],
    ['jumps ahead a little and goes back', [0, 1, 4, 2, 3], [null, null, 0, 1, 3, 4]],
    ['jumps far ahead and goes back', [0, 1, 9_000, 2, 3], [null, null, null, null, 3, 4]],
    ['jumps far ahead, stays, and goes back', [0, 9_000, 9_001, 1, 2], [null, null, null, null, 3, 4]],
  ] as const)('shows what there is when the clock %s', (_what, steps, expected) => {
    expect(shows(...steps)).toEqual(expected);
  });
});

describe('figures over time', () => {
  it('tell rates, times and sizes of the last hour, a gap where nothing was looked at, and nothing that came before', async () => {
    const series = use(startSeries(test.app));
    await series.look();
    clock.advance(10_000);
    for (let n = 0; n < 20; n++) await supertest(test.server).get('/api/health').expect(200);
    await supertest(test.server).get('/api/nothing').expect(404);
    await series.look();
    clock.advance(30_000);
    await series.look();
    const { from, stepMs, series: values } = await get<SeriesAnswer>('/api/admin/series?range=1h');
    expect(Object.keys(values)).toEqual([...FIGURES]);
    expect(stepMs).toBe(10_000);
    expect(new Date(from).getTime() + values.p50Ms!.length * stepMs).toBeGreaterThan(clock.now());
    expect(values.requests2xx!.slice(-5)).toEqual([null, 2, null, null, 0]);
    expect(values.requests4xx!.at(-4)).toBe(0.1);
    expect(values.p95Ms!.at(-4)).toBeGreaterThan(0);
    expect(values.p95Ms!.at(-1)).toBeNull();
    expect(values.requests2xx!.slice(0, -5).every((value) => value === null)).toBe(true);
  });

  it('cost at most a thousandth of a processor', async () => {
    const series = use(startSeries(test.app));
    const LOOKS = 200;
    const lookOften = async (): Promise<void> => {
      for (let n = 0; n < LOOKS; n++) {
        clock.advance(10_000);
        await series.look();
      }
    };
    // What happens once, and what is compiled meanwhile, is no part of it.
    await lookOften();
    const before = process.cpuUsage();
    await lookOften();
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000 / LOOKS / 10_000).toBeLessThan(0.001);
  });

  it('of a day come by the minute, and of a month from one document an hour', async () => {
    const series = use(startSeries(test.app));
    await series.look();
    for (let minute = 0; minute < 75; minute++) {
      clock.advance(MINUTE_MS);
      await supertest(test.server).get('/api/health').expect(200);
      await series.look();
    }
    ({ call } = await buildOperator(test));
    const day = await get<SeriesAnswer>('/api/admin/series?range=24h');
    expect(day.stepMs).toBe(MINUTE_MS);
    const rates = day.series.requests2xx!.filter((value) => value !== null);
    expect(rates.length).toBeGreaterThanOrEqual(75);
    for (const rate of rates.slice(-70)) expect(rate).toBeCloseTo(1 / 60, 5);
    const month = await get<SeriesAnswer>('/api/admin/series?range=30d');
    expect(month.series.requests2xx).toHaveLength(30 * 24 * 6);
    expect(month.series.requests2xx!.filter((value) => value !== null).length).toBeGreaterThanOrEqual(6);
    const stored = await test.app.db.collection('series_hours').find({}).toArray();
    expect(stored.length).toBeLessThanOrEqual(3);
  });

  it('and the state of the service are for operators who see all projects', async () => {
    const { project } = await buildProject(test.app);
    const { call: limited } = await buildOperator(test, 'owner', [project]);
    for (const path of ['series', 'status', 'jobs'])
      expect(codeOf(await limited('get', `/api/admin/${path}`).expect(403))).toBe('ALL_PROJECTS_REQUIRED');
    expect(codeOf(await call('get', '/api/admin/series?range=1y').expect(400))).toBe('INVALID_QUERY');
  });
});

describe('the state of the service', () => {
  it('tells memory, disk, jobs and what is wrong', async () => {
    const { project } = await buildProject(test.app);
    const { webhook } = await addWebhook(test.app, project, { url: 'http://127.0.0.1:9/', events: ['*'] });
    await test.app.db
      .collection('project_webhooks')
      .updateOne({ _id: project._id }, { $set: { 'webhooks.0.failingSince': new Date() } });
    const status = await get<{ problems: object[]; memoryBytes: number; processes: number }>('/api/admin/status');
    expect(status).toMatchObject({
      processes: 1,
      jobs: { running: 0 },
      disk: { totalBytes: expect.any(Number) as number },
    });
    expect(status.memoryBytes).toBeGreaterThan(1_000_000);
    expect(status.problems).toContainEqual({
      kind: 'webhook',
      project: project._id.toHexString(),
      id: webhook.id.toHexString(),
      text: '127.0.0.1:9 fails',
      since: expect.any(String) as string,
    });
  });
});

describe('jobs', () => {
  it('are listed without their payloads, and a dead one is run again', async () => {
    const { project } = await buildProject(test.app);
    await call('post', `/api/projects/${project._id.toHexString()}/mail/test`, { to: 'ann@example.test' }).expect(200);
    await jobStore(test.app).updateMany({}, { $set: { state: 'dead', error: 'away', payload: { canary: 'canary' } } });
    const { items } = await get<{ items: { id: string; name: string }[] }>('/api/admin/jobs?state=dead');
    expect(items[0]).toMatchObject({ state: 'dead', error: 'away' });
    expect(JSON.stringify(items)).not.toContain('canary');
    expect(await get(`/api/admin/jobs?name=${items[0]!.name}&limit=1`)).toMatchObject({ total: 1 });
    const retried = await call('post', `/api/admin/jobs/${items[0]!.id}/retry`).expect(202);
    expect(dataOf(retried)).toMatchObject({ state: 'queued', attempts: 0 });
    expect(codeOf(await call('post', `/api/admin/jobs/${'f'.repeat(24)}/retry`).expect(404))).toBe('JOB_NOT_FOUND');
    expect(codeOf(await call('get', '/api/admin/jobs?state=ill').expect(400))).toBe('INVALID_QUERY');
  });
});

describe('files of a project', () => {
  it('are listed in pages, the newest first, found by a part of their name, and deleted', async () => {
    const owner = await buildProject(test.app);
    const path = `/api/projects/${owner.project._id.toHexString()}/files`;
    const storage = openStorageClient(test, owner.secret);
    for (const name of ['a.txt', 'b.txt', 'c[1].txt']) {
      await storage.upload('bytes', name, 'text/plain');
      clock.advance(1_000);
    }
    interface Page {
      items: { name: string; path: string; size: number; url: string }[];
      next: string | null;
    }
    expect(await get(`${path}/usage`)).toEqual({ files: 3, bytes: 15, limit: 100 * 2 ** 20, provider: 'internal' });
    const first = await get<Page>(`${path}?limit=2`);
    for (const { url } of first.items) await supertest(url).get('').expect(200, 'bytes');
    const rest = await get<Page>(`${path}?limit=2&before=${encodeURIComponent(first.next!)}`);
    const all = [...first.items, ...rest.items];
    expect(all.map(({ name }) => name.replace(/^.*_/, ''))).toHaveLength(3);
    expect(all.at(-1)).toMatchObject({ name: 'a.txt', size: 5, contentType: 'text/plain' });
    expect(rest.next).toBeNull();
    expect((await get<Page>(`${path}?name=B.TX`)).items).toMatchObject([{ name: 'b.txt' }]);
    expect((await get<Page>(`${path}?name=.*`)).items).toEqual([]);
    await call('delete', path, { path: all[0]!.path }).expect(200);
    expect(codeOf(await call('delete', path, { path: all[0]!.path }).expect(404))).toBe('FILE_NOT_FOUND');
    expect((await get<Page>(path)).items).toHaveLength(2);
    expect(codeOf(await call('get', `${path}?before=nothing`).expect(400))).toBe('INVALID_QUERY');
  });
});

describe('deliveries', () => {
  it('show what they send, are listed over all webhooks of a project by state, and counted', async () => {
    const { project } = await buildProject(test.app);
    const path = `/api/projects/${project._id.toHexString()}`;
    const hooks = await Promise.all(
      [1, 2].map(
        async () => (await addWebhook(test.app, project, { url: 'http://127.0.0.1:9/', events: ['*'] })).webhook,
      ),
    );
    const ids = [];
    for (const { id } of hooks) {
      ids.push((await testWebhook(test.app, project, id.toHexString()))._id);
      clock.advance(1_000);
    }
    const of = `${path}/webhooks/${hooks[0]!.id.toHexString()}`;
    const shown = await get<{ body: string; state: string }>(`${of}/deliveries/${ids[0]!}`);
    expect(JSON.parse(shown.body)).toMatchObject({ event: 'test.ping' });
    expect(codeOf(await call('get', `${of}/deliveries/none`).expect(404))).toBe('DELIVERY_NOT_FOUND');
    interface Page {
      items: { id: string }[];
      next: string | null;
    }
    const first = await get<Page>(`${path}/deliveries?state=${shown.state}&limit=1`);
    const rest = await get<Page>(`${path}/deliveries?state=${shown.state}&before=${first.next!}`);
    expect([...first.items, ...rest.items].map(({ id }) => id)).toEqual([...ids].reverse());
    expect((await get<Page>(`${path}/deliveries?state=delivered`)).items).toEqual([]);
    expect(codeOf(await call('get', `${path}/deliveries?before=none`).expect(400))).toBe('INVALID_QUERY');
    expect(await get(`${of}/counts`)).toEqual({ pending: 0, delivered: 0, failed: 0, [shown.state]: 1 });
  });
});

describe('the shape of a collection', () => {
  it('names the fields that documents have, with their types and how many have them', async () => {
    const { project } = await buildProject(test.app);
    const collection = await buildCollection(test.app, project);
    await placeDocuments(test.app, collection, [
      { title: 'a', n: 1 },
      { title: 'b', n: 'one' },
      { title: 'c', n: 1, gone: true, isDeleted: true, deletedAt: new Date() },
      { title: 'd', n: 2, tags: [] },
    ]);
    const path = `/api/projects/${project._id.toHexString()}/collections`;
    expect(await get(`${path}/${collection.name}/shape`)).toEqual({
      looked: 3,
      fields: [
        { name: 'title', types: ['string'], share: 1 },
        { name: 'n', types: ['int', 'string'], share: 1 },
        { name: 'tags', types: ['array'], share: 1 / 3 },
      ],
    });
    expect(codeOf(await call('get', `${path}/users/shape`).expect(403))).toBe('USERS_BLOCKED');
  });
});

describe('mails', () => {
  it('are found by what is known of them and by their address', async () => {
    const { project } = await buildProject(test.app);
    const path = `/api/projects/${project._id.toHexString()}/mail`;
    await call('post', `${path}/test`, { to: 'ann@example.test' }).expect(200);
    await call('post', `${path}/test`, { to: 'bob@example.test' }).expect(200);
    const found = (query: string) => get<{ items: { to: string[] }[]; total: number }>(`${path}/logs?${query}`);
    expect(await found('to=ann@example.test')).toMatchObject({ total: 1 });
    expect(await found('status=queued')).toMatchObject({ total: 2 });
    expect(await found('status=bounced')).toMatchObject({ total: 0 });
    expect(codeOf(await call('get', `${path}/logs?status=lost`).expect(400))).toBe('INVALID_QUERY');
  });
});
