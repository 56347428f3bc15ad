import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Webhook as Verifier } from 'standardwebhooks';
import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  addSchedule,
  listCalls,
  listSchedules,
  removeSchedule,
  replanSchedules,
  runSchedule,
  startDueRuns,
  type NewSchedule,
} from '../world/hooks.js';
import { drainJobs } from '../world/jobs.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { createFakeClock, type FakeClock } from '../helpers/fake-clock.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Where the clock of these tests begins. */
const NOON = Date.parse('2026-03-01T12:00:00.000Z');

let test: TestApp;
let clock: FakeClock;
let folder: TempDir;
let owner: TestProject;

beforeEach(async () => {
  clock = createFakeClock(NOON);
  folder = await openTempDir();
  const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_RATE_LIMIT: 'off', BSVC_HOOKS_DIR: folder.path };
  test = await openTestApp({ settings, clock });
  test.app.ownCode.serveAt(test.url);
  owner = await buildProject(test.app);
  receiver.received = [];
  receiver.answer = (response) => void response.writeHead(204).end();
  return async () => {
    await test.close();
    await folder.remove();
  };
});
const receiver = use(await openWebhookReceiver());

const add = (input: Partial<NewSchedule> = {}) =>
  addSchedule(test.app, owner.project, { name: 'nightly', cron: '0 * * * *', url: receiver.url, ...input });

/** What a worker does within a second, as often as it finds something. */
async function work(): Promise<void> {
  await startDueRuns(test.app);
  await drainJobs(test.app);
}

async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await work();
}

/** What was called, as times of the day. */
const times = (): string[] => receiver.received.map(({ event }) => String(event.dueAt).slice(11, 16));
const only = async () => (await listSchedules(test.app, owner.project._id))[0]!;

describe('a schedule', () => {
  it('calls an address at its times, signed, and says which time it was', async () => {
    const { secret } = await add({ cron: '30 14 * * *', timeZone: 'Europe/Berlin' });
    await pass(HOUR);
    expect(times()).toEqual([]);
    await pass(30 * MINUTE);
    await pass(MINUTE);
    const [{ headers, body, event } = receiver.received[0]!] = receiver.received;
    expect(receiver.received).toHaveLength(1);
    expect(event).toEqual({
      ...{ event: 'schedule', name: 'nightly', dueAt: '2026-03-01T13:30:00.000Z' },
      ...{ isLate: false, attempt: 1 },
    });
    expect(headers['bsvc-hook-depth']).toBe('0');
    const sent = new Date(Number(headers['webhook-timestamp']) * 1000);
    const signature = new Verifier(secret!).sign(headers['webhook-id'] as string, sent, body);
    expect(headers['webhook-signature']).toBe(signature);
    expect((await only()).last).toMatchObject({ error: null });
    expect((await only()).dueAt).toEqual(new Date('2026-03-02T13:30:00.000Z'));
  });

  it('calls a file, whose writes are as good as those of any key', async () => {
    await buildCollection(test.app, owner.project, { name: 'digests', rules: 'server-only' as never });
    const dir = join(folder.path, owner.project.name);
    await mkdir(dir, { recursive: true });
    const code = `export default { nightly: async ({ name, dueAt, api }) => {
      const { _id } = await api.collection('digests').insert({ name, dueAt });
      return _id;
    } };`;
    await writeFile(join(dir, 'digest.mjs'), code);
    const { schedule } = await add({ url: undefined, run: 'digest.mjs' });
    await pass(HOUR);
    const listed = await supertest(test.url).get('/api/data/digests').set('x-api-key', owner.secret).expect(200);
    const { items } = (listed.body as { data: { items: { _id: string }[] } }).data;
    expect(items).toMatchObject([{ name: 'nightly', dueAt: '2026-03-01T13:00:00.000Z' }]);
    await test.app.backgroundTasks.idle();
    const [call] = await listCalls(test.app, schedule._id, 5);
    expect(call).toMatchObject({ state: 'delivered', event: 'schedule.nightly' });
    expect(call!.attempts[0]!.response).toBe(JSON.stringify(items[0]!._id));
  });

  it('makes one late run of what was missed, or none, and goes on from now', async () => {
    await add({ name: 'once' });
    await add({ name: 'none', missed: 'skip' });
    await pass(5 * HOUR + 10 * MINUTE);
    expect(receiver.received.map(({ event }) => [event.name, event.dueAt, event.isLate])).toEqual([
      ['once', '2026-03-01T13:00:00.000Z', true],
    ]);
    receiver.received = [];
    await pass(50 * MINUTE);
    expect(times()).toEqual(['18:00', '18:00']);
  });

  it('neither repeats nor forgets a time when the clock is wrong for a while', async () => {
    await add();
    // Two hours ahead: what is due is run.
    await pass(2 * HOUR);
    await pass(HOUR);
    expect(times()).toEqual(['13:00', '15:00']);
    clock.advance(-3 * HOUR + MINUTE);
    await replanSchedules(test.app);
    await work();
    for (let hour = 0; hour < 5; hour++) await pass(HOUR);
    expect(times()).toEqual(['13:00', '15:00', '14:00', '16:00', '17:00']);
  });

  it('is tried again until the next time is due, and each try has the same id', async () => {
    receiver.answer = (response) => void response.writeHead(500).end('down');
    await add();
    await pass(HOUR);
    await pass(70_000);
    await pass(6 * MINUTE);
    expect(receiver.received.map(({ event }) => event.attempt)).toEqual([1, 2, 3]);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect((await only()).last).toMatchObject({ error: 'The handler answered 500.' });
    await pass(53 * MINUTE);
    receiver.received = [];
    receiver.answer = (response) => void response.writeHead(200).end();
    await pass(HOUR);
    expect(times()).toEqual(['15:00']);
    await pass(59 * MINUTE);
    expect(receiver.received).toHaveLength(1);
  });

  it('is run now beside its times', async () => {
    receiver.answer = (response) => void response.writeHead(200).end('sent 3 mails');
    await add();
    expect(await runSchedule(test.app, owner.project, 'nightly')).toEqual({ answer: 'sent 3 mails', error: null });
    expect(receiver.received[0]!.event).toMatchObject({ name: 'nightly', dueAt: null });
    await pass(HOUR);
    expect(receiver.received).toHaveLength(2);
  });

  it('goes with its log, and takes nothing more', async () => {
    const { schedule } = await add();
    await pass(HOUR);
    await test.app.backgroundTasks.idle();
    clock.advance(HOUR);
    await startDueRuns(test.app);
    await removeSchedule(test.app, owner.project, 'nightly');
    await drainJobs(test.app);
    expect(times()).toEqual(['13:00']);
    expect(await listCalls(test.app, schedule._id, 5)).toEqual([]);
  });

  it.each([
    [{ cron: '* * * * * *' }, 'INVALID_SCHEDULE'],
    [{ timeZone: 'Mars/Olympus' }, 'INVALID_SCHEDULE'],
    [{ name: 'a b' }, 'INVALID_SCHEDULE'],
    [{ name: '' }, 'INVALID_SCHEDULE'],
    [{ url: 'ftp://x' }, 'INVALID_URL'],
    [{ run: 'x.mjs' }, 'INVALID_HOOK'],
    [{ url: undefined }, 'INVALID_HOOK'],
  ])('is refused with %j', async (input, code) => {
    await expect(add(input)).rejects.toMatchObject({ code });
  });

  it('has a name of its own, and is one of at most a hundred', async () => {
    await add();
    await expect(add()).rejects.toMatchObject({ code: 'SCHEDULE_EXISTS' });
    expect(await add({ ifNotExists: true })).toMatchObject({ created: false, secret: null });
    await expect(removeSchedule(test.app, owner.project, 'other')).rejects.toMatchObject({
      code: 'SCHEDULE_NOT_FOUND',
    });
    const names = Array.from({ length: 110 }, (_, at) => `s${at}`);
    const outcomes = await Promise.allSettled(names.map((name) => add({ name })));
    const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason as { code: string }] : []));
    expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['SCHEDULE_LIMIT']));
    expect((await listSchedules(test.app, owner.project._id)).length).toBeLessThanOrEqual(100);
  });
});
