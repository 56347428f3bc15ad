import supertest from 'supertest';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type App, openServiceClock, systemClock } from '../../world/app.js';
import { type JobRecord, drainJobs, listOutbox, sweepWebhooksJob } from '../../world/jobs.js';
import { purgeTrashJob } from '../../../src/features/documents/bulk/remove-old-documents.job.js';
import { removeExpiredAccessJob } from '../../../src/features/users/remove-records.job.js';
import { claimJobs } from '../../../src/platform/jobs/claim-jobs.js';
import type { AnyJobDefinition } from '../../../src/platform/jobs/job.js';
import { openRunner } from '../../../src/platform/jobs/runner.js';
import { startSchedules } from '../../../src/platform/jobs/schedules.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../../helpers/build-webhook.js';
import { eventually } from '../../helpers/eventually.js';
import { createFakeClock, type FakeClock } from '../../helpers/fake-clock.js';
import { startMailProviderDouble } from '../../helpers/mail-provider-double.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import {
  bearer,
  buildEmail,
  openUserClient,
  PASSWORD,
  readMailedCode,
  type UserClient,
} from '../../helpers/user-client.js';
import { openWebhookReceiver } from '../../helpers/webhook-receiver.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

let clock: FakeClock;
let test: TestApp;
let owner: TestProject;
let users: UserClient;

async function open(settings: Record<string, string> = {}): Promise<void> {
  clock = createFakeClock();
  test = await openTestApp({
    clock,
    settings: { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', ...settings },
  });
  owner = await buildProject(test.app);
  users = openUserClient(test, owner.publishable);
}
beforeEach(() => open());
afterEach(() => test.close());

const data = (method: 'get' | 'post' | 'patch' | 'delete', path: string, body?: object) =>
  supertest(test.url)[method](`/api/data/${path}`).set('x-api-key', owner.secret).send(body);

/** Lets the job run every hour, as its schedule does. */
async function runHourly(job: AnyJobDefinition<App>, hours: number): Promise<void> {
  for (let hour = 0; hour < hours; hour++) {
    await test.app.jobs.enqueue(job, {});
    await drainJobs(test.app);
    clock.advance(HOUR);
  }
}

/** What a token of that reply opens. */
const me = async (reply: { body: unknown }): Promise<number> =>
  (await users.me((reply.body as { accessToken: string }).accessToken)).status;
const refreshTokenOf = (reply: { headers: Record<string, string> }): string => reply.headers['x-refresh-token']!;

describe('a clock that was ahead by a year and comes back', () => {
  it('leaves no rate limit behind', async () => {
    await test.close();
    await open({ BSVC_RATE_LIMIT: '3/15m' });
    const statuses = async (): Promise<number[]> => {
      const found: number[] = [];
      for (let at = 0; at < 4; at++) {
        const request = supertest(test.url).get('/api/data/x').set('x-api-key', owner.publishable);
        found.push((await request).status);
      }
      return found;
    };
    clock.advance(YEAR);
    expect(await statuses()).toEqual([404, 404, 404, 429]);
    clock.advance(-YEAR);
    expect(await statuses()).toEqual([404, 404, 404, 429]);
  });

  it('leaves no account locked', async () => {
    const email = buildEmail();
    await users.signUp({ email });
    clock.advance(YEAR);
    for (let at = 0; at < 5; at++) await users.logIn(email, 'wrong password');
    expect((await users.logIn(email)).status).toBe(423);
    clock.advance(-YEAR);
    expect((await users.logIn(email)).status).toBe(200);
    // And a lock from now on is a lock.
    for (let at = 0; at < 5; at++) await users.logIn(email, 'wrong password');
    expect((await users.logIn(email)).status).toBe(423);
  });

  it('sends a new code and takes it, and not the one from the year to come', async () => {
    const email = buildEmail();
    await users.signUp({ email });
    clock.advance(YEAR);
    await users.post('/request-password-reset', { email });
    const late = await readMailedCode(test, email);
    clock.advance(-YEAR);
    const reset = (otp: string) => users.post('/reset-password', { email, otp, newPassword: 'a newer password' });
    expect((await reset(late)).status).toBe(400);
    await users.post('/request-password-reset', { email });
    await drainJobs(test.app);
    const code = await readNewestCode(email, late);
    expect((await reset(code)).status).toBe(200);
  });

  it('ends access tokens from there, and their sessions go on', async () => {
    const email = buildEmail();
    const before = await users.signUp({ email });
    clock.advance(YEAR);
    const then = await users.logIn(email);
    expect(await me(then)).toBe(200);
    clock.advance(-YEAR);
    const refused = await users.me((then.body as { accessToken: string }).accessToken);
    expect([refused.status, (refused.body as { code: string }).code]).toEqual([401, 'TOKEN_EXPIRED']);
    expect(await me(before)).toBe(200);
    const refreshed = await users.refresh(refreshTokenOf(then));
    expect(refreshed.status).toBe(200);
    expect(await me(refreshed)).toBe(200);
  });

  it('lets in who changed the password meanwhile, and nobody with an older token', async () => {
    const email = buildEmail();
    const before = await users.signUp({ email });
    clock.advance(YEAR);
    const { accessToken } = (await users.logIn(email)).body as { accessToken: string };
    const body = { currentPassword: PASSWORD, newPassword: 'a newer password' };
    expect((await users.post('/change-password', body, bearer(accessToken))).status).toBe(200);
    clock.advance(-YEAR);
    expect(await me(before)).toBe(401);
    const after = await users.logIn(email, 'a newer password');
    expect(await me(after)).toBe(200);
    expect((await users.refresh(refreshTokenOf(before))).status).toBe(401);
  });

  it('still ends a session whose spent refresh token is shown again', async () => {
    const first = await users.signUp();
    clock.advance(YEAR);
    // The session of a year ago is over; one from there is spent there.
    const then = await users.logIn((first.body as { user: { email: string } }).user.email);
    const next = await users.refresh(refreshTokenOf(then));
    clock.advance(-YEAR);
    const again = await users.refresh(refreshTokenOf(then));
    expect((again.body as { code: string }).code).toBe('REFRESH_REUSED');
    expect((await users.refresh(refreshTokenOf(next))).status).toBe(401);
  });

  it('has removed no session that is still good', async () => {
    const signedUp = await users.signUp();
    await runHourly(removeExpiredAccessJob, 1);
    clock.advance(YEAR);
    await runHourly(removeExpiredAccessJob, 5);
    clock.advance(-YEAR);
    expect((await users.refresh(refreshTokenOf(signedUp))).status).toBe(200);
  });

  it('has purged nothing from the trash, and purges again when it has gone on evenly for a day', async () => {
    await buildCollection(test.app, owner.project, { name: 'notes' });
    const { _id } = (await data('post', 'notes', { n: 1 })).body as { _id: string };
    await data('delete', `notes/${_id}`).expect(200);
    await runHourly(purgeTrashJob, 1);
    clock.advance(YEAR);
    await runHourly(purgeTrashJob, 20);
    clock.advance(-YEAR);
    await runHourly(purgeTrashJob, 2);
    const inTrash = async (): Promise<number> => (await data('get', `notes/${_id}?include_deleted=true`)).status;
    expect(await inTrash()).toBe(200);
    expect(test.logLines.filter((line) => line.includes('the clock was moved'))).toHaveLength(2);
    for (let day = 0; day < 29; day++) {
      clock.advance(DAY - HOUR);
      await runHourly(purgeTrashJob, 1);
    }
    expect(await inTrash()).toBe(200);
    await runHourly(purgeTrashJob, 24);
    expect(await inTrash()).toBe(404);
  });

  it('lets the mail provider be called at once, whatever turns were booked there', async () => {
    const provider = await startMailProviderDouble();
    await test.close();
    await open({ RESEND_API_KEY: 're_clock', RESEND_BASE_URL: provider.url, BSVC_MAIL_FROM: 'a@example.test' });
    const send = async (): Promise<void> => {
      const body = { to: 'b@example.test', subject: 's', text: 't' };
      await supertest(test.url).post('/api/mail/send').set('x-api-key', owner.secret).send(body).expect(200);
      await drainJobs(test.app);
    };
    clock.advance(DAY);
    await send();
    clock.advance(-DAY);
    await send();
    expect(provider.accepted).toHaveLength(2);
    await provider.close();
  });

  it('delivers what was put off there', async () => {
    const receiver = await openWebhookReceiver();
    const notes = await buildCollection(test.app, owner.project, { name: 'notes' });
    await buildWebhook(test.app, owner.project, receiver.url);
    receiver.answer = (response) => void response.writeHead(500).end();
    clock.advance(YEAR);
    const { _id } = (await data('post', notes.name, { n: 1 })).body as { _id: string };
    await settleWebhooks(test.app);
    expect(receiver.received).toHaveLength(1);
    receiver.answer = (response) => void response.writeHead(200).end();
    clock.advance(-YEAR);
    for (let sweep = 0; sweep < 2; sweep++) {
      await test.app.jobs.enqueue(sweepWebhooksJob, {});
      await settleWebhooks(test.app);
      clock.advance(10_000);
    }
    expect(receiver.actionsOf(_id)).toEqual(['insert', 'insert']);
    await receiver.close();
  });
});

describe('the job queue when the clock is moved', () => {
  const LEASE = { concurrency: 5, leaseMs: 300 };
  /** In which a busy machine’s heart beats in time. */
  const LONGER = { concurrency: 5, leaseMs: 1_500 };

  it('takes back at once what a dead worker had leased in the year to come, and runs what was put off there', async () => {
    const runs: string[] = [];
    const retry = { delaysMs: [HOUR] };
    const failing: AnyJobDefinition<App> = {
      name: 'test.failing',
      retry,
      run: async () => {
        runs.push('failing');
        if (runs.filter((name) => name === 'failing').length === 1) throw new Error('not yet');
      },
    };
    clock.advance(YEAR);
    await test.app.jobs.enqueue(failing, {});
    await openRunner(test.app, [failing], LEASE).drain();
    clock.advance(-YEAR);
    await openRunner(test.app, [failing], LEASE).drain();
    expect(runs).toEqual(['failing']);
    clock.advance(HOUR * 1.2);
    await openRunner(test.app, [failing], LEASE).drain();
    expect(runs).toEqual(['failing', 'failing']);

    const lost: AnyJobDefinition<App> = {
      name: 'test.lost',
      retry: { delaysMs: [0] },
      run: async () => void runs.push('lost'),
    };
    clock.advance(YEAR);
    await test.app.jobs.enqueue(lost, {});
    const dead = { workerId: 'dead', pool: 'shared', names: ['test.lost'], leaseMs: 15_000, limit: 1, crowded: false };
    const leased: JobRecord[] = [];
    await claimJobs(test.app, dead, (job) => void leased.push(job));
    expect(leased).toHaveLength(1);
    clock.advance(-YEAR);
    const runner = openRunner(test.app, [lost], LEASE);
    await runner.drain();
    expect(runs).not.toContain('lost');
    clock.advance(1_000);
    await runner.drain();
    expect(runs).toContain('lost');
  });

  it.each([
    ['ahead', YEAR],
    ['ahead', HOUR],
    ['back', -YEAR],
  ])('does not run twice what is running while it goes %s', async (_way, by) => {
    let runs = 0;
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const long: AnyJobDefinition<App> = {
      name: 'test.long',
      retry: { delaysMs: [0] },
      run: async () => {
        runs++;
        await ended;
      },
    };
    let looks = 0;
    const quick: AnyJobDefinition<App> = {
      name: 'test.quick',
      retry: { delaysMs: [0] },
      run: async () => void looks++,
    };
    const runner = openRunner(test.app, [long, quick], LONGER);
    runner.start();
    await test.app.jobs.enqueue(long, {});
    await eventually('it runs', () => runs === 1);
    clock.advance(by);
    // Longer than a lease, in the time that heartbeats go by.
    const movedAt = performance.now();
    for (let at = 1; performance.now() - movedAt < 1.5 * LONGER.leaseMs; at++) {
      await test.app.jobs.enqueue(quick, {});
      await eventually('the queue was looked at', () => looks >= at);
    }
    expect(runs).toBe(1);
    end();
    await runner.stop(1_000);
    expect(runs).toBe(1);
  });

  it('goes on with its schedules when the clock is set back', async () => {
    vi.useFakeTimers({ now: Date.parse('2026-06-01T12:00:00Z') });
    try {
      const ticks: string[] = [];
      const deps = {
        ...test.app,
        clock: openServiceClock(systemClock),
        db: { collection: () => ({ findOne: () => Promise.resolve(null) }) } as never,
        jobs: {
          ...test.app.jobs,
          enqueue: (_job: unknown, _payload: unknown, { uniqueKey }: { uniqueKey?: string } = {}) =>
            Promise.resolve(ticks.push(uniqueKey!) > 0),
        },
      };
      const job: AnyJobDefinition<typeof deps> = {
        name: 'test.tick',
        retry: { delaysMs: [] },
        run: async () => undefined,
      };
      const stop = startSchedules(deps, [{ job, cron: '*/10 * * * * *' }]);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(ticks).toHaveLength(6);
      vi.setSystemTime(Date.parse('2025-06-01T12:00:03Z'));
      await vi.advanceTimersByTimeAsync(60_000);
      const after = ticks.filter((key) => key.includes('@2025'));
      expect(after.length).toBeGreaterThanOrEqual(4);
      expect(new Set(ticks).size).toBe(ticks.length);
      await stop();
    } finally {
      vi.useRealTimers();
    }
  });
});

/** The code in a mail to `email` that is not `known`. */
async function readNewestCode(email: string, known: string): Promise<string> {
  const codes = (await listOutbox(test.app, { to: email })).flatMap(
    ({ text }) => /\b\d{6}\b/.exec(text ?? '')?.[0] ?? [],
  );
  return codes.at(-1) === known ? codes[0]! : codes.find((code) => code !== known)!;
}
