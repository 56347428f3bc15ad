import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { addAfter } from '../world/hooks.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { buildOperator } from '../helpers/operator-client.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use, useTestApp } from '../helpers/use.js';

const URL = 'http://127.0.0.1:9/';
const MAX_HOOKS = 200;
const MAX_SCHEDULES = 100;

const folder = use(await openTempDir());
const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_RATE_LIMIT: 'off', BSVC_HOOKS_DIR: folder.path };
const test = await useTestApp({ settings });
const owner = await buildProject(test.app);
const { call } = await buildOperator(test);
const path = `/api/projects/${owner.project._id.toHexString()}`;
await buildCollection(test.app, owner.project, { name: 'notes' });

const answerOf = ({ status, body }: { status: number; body: unknown }): [number, unknown] => [
  status,
  (body as { code?: unknown }).code,
];

describe('own code is refused over HTTP', () => {
  it.each<[string, string, object, number, string]>([
    ['a hook with no time', 'hooks', { event: 'notes.create', url: URL, timeoutMs: 0 }, 400, 'VALIDATION_FAILED'],
    [
      'a hook with too much time',
      'hooks',
      { event: 'notes.create', url: URL, timeoutMs: 1e9 },
      400,
      'VALIDATION_FAILED',
    ],
    ['a hook of no event', 'hooks', { event: 'notes.read', url: URL }, 400, 'INVALID_EVENTS'],
    ['a hook that names neither', 'hooks', { event: 'notes.create' }, 400, 'INVALID_HOOK'],
    ['a schedule of no cron', 'schedules', { name: 'a', cron: 'daily', url: URL }, 400, 'INVALID_SCHEDULE'],
    ['a schedule that never is due', 'schedules', { name: 'a', cron: '0 0 31 2 *', url: URL }, 400, 'INVALID_SCHEDULE'],
    [
      'a schedule of no zone',
      'schedules',
      { name: 'a', cron: '* * * * *', timeZone: 'X', url: URL },
      400,
      'INVALID_SCHEDULE',
    ],
    ['a schedule to no address', 'schedules', { name: 'a', cron: '* * * * *', url: 'x' }, 400, 'INVALID_URL'],
  ])('%s', async (_, at, body, status, code) => {
    expect(answerOf(await call('post', `${path}/${at}`, body))).toEqual([status, code]);
  });

  it('a hook of an event that has one, and one more than a project may have', async () => {
    const add = (collection: string) => call('post', `${path}/hooks`, { event: `${collection}.create`, url: URL });
    for (let at = 0; at < MAX_HOOKS; at++) {
      const name = `notes${at}`;
      if (at > 0) await buildCollection(test.app, owner.project, { name });
      expect((await add(at > 0 ? name : 'notes')).status).toBe(201);
    }
    expect(answerOf(await add('notes'))).toEqual([409, 'HOOK_EXISTS']);
    await buildCollection(test.app, owner.project, { name: 'one-more' });
    expect(answerOf(await add('one-more'))).toEqual([400, 'HOOK_LIMIT']);
  });

  it('a schedule of a name that is taken, and one more than a project may have', async () => {
    const add = (name: string) => call('post', `${path}/schedules`, { name, cron: '0 3 * * *', url: URL });
    for (let at = 0; at < MAX_SCHEDULES; at++) expect((await add(`s${at}`)).status).toBe(201);
    expect(answerOf(await add('s0'))).toEqual([409, 'SCHEDULE_EXISTS']);
    expect(answerOf(await add('one-more'))).toEqual([403, 'SCHEDULE_LIMIT']);
    await call('delete', `${path}/schedules/s0`).expect(200);
    expect((await add('one-more')).status).toBe(201);
  });

  it.each<[string, object]>([
    ['no moment', { at: 'tomorrow', url: URL }],
    ['a day that no calendar has', { at: '2026-02-30T00:00:00Z', url: URL }],
    ['an hour that no day has', { at: '2026-02-20T24:00:00Z', url: URL }],
    ['a moment too far ahead', { at: '2999-01-01T00:00:00Z', url: URL }],
    ['a body of more than 64 KiB', { at: '2026-01-01T00:00:00Z', url: URL, body: 'x'.repeat(70_000) }],
  ])('a planned call with %s', async (_, body) => {
    const sent = await supertest(test.server).post('/api/schedules').set('x-api-key', owner.secret).send(body);
    expect(answerOf(sent)).toEqual([400, 'INVALID_SCHEDULE']);
  });
});

it('handlers in files do not count among the webhooks that a plan limits', async () => {
  const before = (await call('get', `${path}/usage`)).body as { data: { webhooks: number } };
  await addAfter(test.app, owner.project, { event: 'after.notes.update', run: 'notes.mjs' });
  const after = (await call('get', `${path}/usage`)).body as typeof before;
  expect(after.data.webhooks).toBe(before.data.webhooks);
});
