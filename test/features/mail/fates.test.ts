import request from 'supertest';
import { ObjectId } from 'bson';
import { beforeEach, describe, expect, it } from 'vitest';
import { mailLogStore, type MailLog } from '../../../src/features/mail/mail-log.js';
import { setTemplate } from '../../../src/features/mail/mail-template.js';
import { setMailSettings } from '../../../src/features/mail/project-mail.js';
import { mailUsageStore, readMailQuota, reserveMailQuota } from '../../../src/features/mail/sending/mail-quota.js';
import { sendSystemMail, waitForMail } from '../../../src/features/mail/sending/send-mail.js';
import { sweepMail } from '../../../src/features/mail/sending/sweep-mail.job.js';
import { projectStore } from '../../../src/features/projects/project-store.js';
import { updateProject } from '../../../src/features/projects/update-project.js';
import { jobStore } from '../../../src/platform/jobs/job.js';
import { drainJobs } from '../../../src/worker.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { slotsUsed } from '../../helpers/mail-quota.js';
import { startMailProviderDouble, type Mood } from '../../helpers/mail-provider-double.js';
import { use, useTestApp } from '../../helpers/use.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const PAUSES = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR];

// Ids of mails carry the system's time, so this clock begins with it; then it stands until it is moved.
const clock = { ms: Date.now(), now: () => clock.ms };
let owner: TestProject;

const provider = use(await startMailProviderDouble());
const test = await useTestApp({
  clock,
  settings: {
    RESEND_API_KEY: 're_platform',
    RESEND_BASE_URL: provider.url,
    BSVC_MAIL_FROM: 'a@b.co',
    BSVC_MAIL_RATE: '1000/1s',
    BSVC_RATE_LIMIT: 'off',
  },
});
beforeEach(async () => {
  provider.moods.length = 0;
  provider.calls.length = 0;
  for (const store of [jobStore, mailLogStore, mailUsageStore]) await store(test.app).deleteMany({});
  await test.app.db.collection('mail_pace').deleteMany({});
  owner = await buildProject(test.app);
});

const post = (path: string, body: object, key?: string) =>
  request(test.server)
    .post(`/api/mail${path}`)
    .set({ 'x-api-key': owner.secret, ...(key !== undefined && { 'idempotency-key': key }) })
    .send(body);
const MAIL = { to: 'ann@example.com', subject: 'Hello', text: 'Hi' };
const send = (key?: string) => post('/send', MAIL, key);
const used = (): Promise<number> => slotsUsed(test.app, owner.project);
const logs = (): Promise<MailLog[]> =>
  mailLogStore(test.app).find({ projectId: owner.project._id }).sort({ _id: 1 }).toArray() as Promise<MailLog[]>;
const tries = (): number => provider.calls.filter(({ path }) => path === '/emails').length;
const moveOn = async (ms: number): Promise<void> => {
  clock.ms += ms;
  await drainJobs(test.app);
};

describe('a mail that the provider does not take', () => {
  /** The pauses after which it is tried again, until it is given up. */
  async function tryToEnd(mood: Mood): Promise<number[]> {
    provider.moods.push(...Array<Mood>(20).fill(mood));
    await send().expect(200);
    await drainJobs(test.app);
    const pauses: number[] = [];
    for (;;) {
      const [job] = await jobStore(test.app).find({ pool: 'mail.deliver', state: 'queued' }).toArray();
      if (!job) return pauses;
      expect(await logs()).toMatchObject([{ status: 'queued', reason: expect.any(String) as string }]);
      expect(await used()).toBe(1);
      pauses.push(job.runAt.getTime() - clock.ms);
      await moveOn(pauses.at(-1)!);
      expect(tries()).toBe(pauses.length + 1);
    }
  }

  it.each([
    ['asks for it later', { status: 429, name: 'rate_limit_exceeded' }, 0],
    ['gives no answer, so that nobody knows whether it left', 'reset', 1],
  ] as [string, Mood, number][])(
    'is tried eight times within five hours where the provider %s, then it has failed',
    async (_what, mood, slots) => {
      const pauses = await tryToEnd(mood);
      expect(pauses).toHaveLength(PAUSES.length);
      pauses.forEach((pause, at) => {
        expect(pause).toBeGreaterThanOrEqual(PAUSES[at]!);
        expect(pause).toBeLessThanOrEqual(PAUSES[at]! * 1.1);
      });
      expect(await logs()).toMatchObject([{ status: 'failed', reason: expect.any(String) as string }]);
      expect(await used()).toBe(slots);
      expect((await mailUsageStore(test.app).findOne({ projectId: owner.project._id }))!.open).toEqual([]);
    },
  );

  it('waits, and all mail of that key with it, for as long as the provider asks', async () => {
    provider.moods.push({ status: 429, name: 'rate_limit_exceeded', headers: { 'retry-after': '120' } });
    await send().expect(200);
    await drainJobs(test.app);
    await send().expect(200);
    await moveOn(100 * SECOND);
    expect(tries()).toBe(1);
    await moveOn(20 * SECOND);
    expect(tries()).toBe(3);
    expect((await logs()).map(({ status }) => status)).toEqual(['sent', 'sent']);
  });

  it('waits an hour at most, whatever the provider asks', async () => {
    provider.moods.push({ status: 429, name: 'rate_limit_exceeded', headers: { 'retry-after': '86400' } });
    await send().expect(200);
    await drainJobs(test.app);
    await moveOn(HOUR - MINUTE);
    expect(tries()).toBe(1);
    await moveOn(MINUTE);
    expect(await logs()).toMatchObject([{ status: 'sent' }]);
  });

  it('is not tried once its project is being deleted, and its slot is given back', async () => {
    await send().expect(200);
    await projectStore(test.app).updateOne({ _id: owner.project._id }, { $set: { state: 'deleting' } });
    await drainJobs(test.app);
    expect(tries()).toBe(0);
    expect(await logs()).toMatchObject([{ status: 'failed', reason: 'the project is gone' }]);
    expect(await used()).toBe(0);
  });
});

describe('whoever waits for a mail', () => {
  const wait = (id: string, forMs: number, signal = new AbortController().signal) =>
    waitForMail(test.app, id, forMs, signal);
  const queue = async (): Promise<string> => ((await send().expect(200)).body as { data: { id: string } }).data.id;

  it('learns that it was sent or refused, or why it has to wait, as soon as that is known', async () => {
    const sent = await queue();
    const [fate] = await Promise.all([wait(sent, HOUR), drainJobs(test.app)]);
    expect(fate).toEqual({ status: 'sent', reason: null });
    for (const [status, mood] of [
      ['failed', { status: 422 }],
      ['queued', { status: 500 }],
    ] as const) {
      const id = await queue();
      provider.moods.push(mood);
      const [told] = await Promise.all([wait(id, HOUR), drainJobs(test.app)]);
      expect(told).toEqual({ status, reason: expect.stringContaining('the double says no') as string });
    }
  });

  it('waits no longer than he wants to', async () => {
    const id = await queue();
    expect(await wait(id, 0)).toEqual({ status: 'queued', reason: null });
    expect(await wait(new ObjectId().toHexString(), 0)).toEqual({ status: 'queued', reason: null });
    await expect(wait(id, HOUR, AbortSignal.abort(new Error('enough')))).rejects.toThrow();
  });
});

describe('the quota of mails', () => {
  const monthOf = (months: number): number => {
    const now = new Date(clock.ms);
    return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1);
  };

  it('is all that fits at once, in a month that has just begun too', async () => {
    const project = await updateProject(test.app, owner.project.name, { limits: { mail: 3 } });
    const ids = (count: number): ObjectId[] => Array.from({ length: count }, () => new ObjectId());
    await expect(reserveMailQuota(test.app, project, ids(4))).rejects.toMatchObject({ code: 'MAIL_QUOTA_EXCEEDED' });
    expect(await mailUsageStore(test.app).findOne({ projectId: project._id })).toBeNull();
    const calls = ids(2);
    expect(await reserveMailQuota(test.app, project, calls, 'calls')).toEqual({ used: 2, limit: 3 });
    // The sweep looks for open ones, and finds none of these.
    const stored = await mailUsageStore(test.app).findOne({ projectId: project._id });
    expect(stored).toMatchObject({ used: 2, open: [], calls });
    await expect(reserveMailQuota(test.app, project, ids(2))).rejects.toMatchObject({ code: 'MAIL_QUOTA_EXCEEDED' });
    expect(await reserveMailQuota(test.app, project, ids(1))).toEqual({ used: 3, limit: 3 });
  });

  it('is of a calendar month, and a refusal says when the next begins', async () => {
    await updateProject(test.app, owner.project.name, { limits: { mail: 1 } });
    expect((await send().expect(200)).body).toMatchObject({ data: { monthlyUsage: 1, monthlyLimit: 1 } });
    clock.ms = monthOf(1) - 90 * SECOND;
    const refused = await send().expect(429);
    expect(refused.body).toMatchObject({ code: 'MAIL_QUOTA_EXCEEDED' });
    expect(refused.headers['retry-after']).toBe('90');
    clock.ms += 90 * SECOND - 1;
    await send().expect(429);
    clock.ms += 1;
    expect((await send().expect(200)).body).toMatchObject({ data: { monthlyUsage: 1 } });
    await send().expect(429);
  });

  it('gets a slot back in the month from which it was taken', async () => {
    owner.project = await updateProject(test.app, owner.project.name, { limits: { mail: 2 } });
    const before = clock.ms;
    await send().expect(200);
    clock.ms = monthOf(1);
    await send().expect(200);
    provider.moods.push({ status: 422 });
    await drainJobs(test.app);
    expect((await logs()).map(({ status }) => status).sort()).toEqual(['failed', 'sent']);
    const now = clock.ms;
    const inMonths = [];
    for (const ms of [before, now]) {
      clock.ms = ms;
      inMonths.push((await readMailQuota(test.app, owner.project)).used);
    }
    clock.ms = now;
    const [first] = await logs();
    expect(inMonths).toEqual(first!.status === 'failed' ? [0, 1] : [1, 0]);
  });

  it('is none where the project has no limit', async () => {
    await updateProject(test.app, owner.project.name, { plan: 'pro', limits: { mail: null } } as never);
    const { data } = (await send().expect(200)).body as { data: { monthlyUsage: number; monthlyLimit: null } };
    expect(data.monthlyUsage).toBe(1);
  });
});

describe('an Idempotency-Key', () => {
  it('is forgotten after 24 hours', async () => {
    const first = (await send('once').expect(200)).body as object;
    clock.ms += 24 * HOUR - 1;
    expect((await send('once').expect(200)).body).toEqual(first);
    clock.ms += 1;
    expect((await send('once').expect(200)).body).not.toEqual(first);
    expect(await logs()).toHaveLength(2);
  });

  it('of a mail is not one of a batch, nor one of another project', async () => {
    const first = (await send('once').expect(200)).body as { data: { id: string } };
    await post('/send-batch', [MAIL], 'once').expect(200);
    owner = await buildProject(test.app);
    const other = (await send('once').expect(200)).body as { data: { id: string } };
    expect(other.data.id).not.toBe(first.data.id);
  });

  const keys = () => test.app.db.collection<{ _id: string; projectId: ObjectId }>('idempotency_keys');
  /** As a process leaves it that was killed: begun, and without an answer. */
  const forgetAnswer = (): Promise<unknown> =>
    keys().updateOne({ projectId: owner.project._id }, { $set: { answer: null } });

  it('stands for an attempt under way for thirty seconds, then for one that was cut off', async () => {
    const first = (await send('once').expect(200)).body as object;
    await forgetAnswer();
    clock.ms += 30 * SECOND - 1;
    const refused = await send('once').expect(409);
    expect(refused.body).toMatchObject({ code: 'REQUEST_UNDER_WAY' });
    expect(refused.headers['retry-after']).toBe('1');
    clock.ms += 1;
    expect((await send('once').expect(200)).body).toEqual(first);
    expect([(await logs()).length, await used()]).toEqual([1, 1]);
  });

  it('of a batch that was cut off is 409, since nobody knows what of it left, each time', async () => {
    await post('/send-batch', [MAIL], 'once').expect(200);
    await forgetAnswer();
    for (let time = 0; time < 2; time++) {
      clock.ms += 30 * SECOND;
      const refused = await post('/send-batch', [MAIL], 'once').expect(409);
      expect(refused.body).toMatchObject({ code: 'BATCH_UNCERTAIN' });
    }
    expect(await logs()).toHaveLength(1);
  });

  it('stays with what it stands for when the second attempt is refused', async () => {
    await send('once').expect(200);
    await forgetAnswer();
    await mailLogStore(test.app).deleteMany({ projectId: owner.project._id });
    await updateProject(test.app, owner.project.name, { limits: { mail: 0 } });
    clock.ms += 30 * SECOND;
    await send('once').expect(429);
    expect(await keys().countDocuments({ projectId: owner.project._id })).toBe(1);
    // The slot of the first attempt was given back by the second.
    expect(await used()).toBe(0);
  });
});

describe('mail that a crash left', () => {
  const sweep = (): Promise<unknown> => Promise.resolve(sweepMail.run(test.app, {}, {} as never));
  const left = (_id: ObjectId): Promise<unknown> => reserveMailQuota(test.app, owner.project, [_id]);
  /** An id of a mail that was begun so long ago. */
  const idOf = (ageMs: number): ObjectId => ObjectId.createFromTime(Math.floor((clock.ms - ageMs) / SECOND));

  it('is handed to the worker again after five minutes', async () => {
    await send().expect(200);
    await jobStore(test.app).deleteMany({});
    clock.ms += 5 * MINUTE;
    await sweep();
    expect(await jobStore(test.app).countDocuments({})).toBe(0);
    clock.ms += 1;
    await sweep();
    await drainJobs(test.app);
    expect(await logs()).toMatchObject([{ status: 'sent' }]);
  });

  it('is handed over at once when it was written by a clock that was more than an hour ahead', async () => {
    await send().expect(200);
    await jobStore(test.app).deleteMany({});
    clock.ms -= HOUR / 2;
    await sweep();
    expect(await jobStore(test.app).countDocuments({})).toBe(0);
    clock.ms -= HOUR;
    await sweep();
    await drainJobs(test.app);
    expect(await logs()).toMatchObject([{ status: 'sent' }]);
    clock.ms += 1.5 * HOUR;
  });

  it('gives its slot back where it was never written, once it is five minutes old', async () => {
    await left(idOf(4 * MINUTE));
    await left(idOf(6 * MINUTE));
    await sweep();
    expect(await used()).toBe(1);
    await left(idOf(-2 * HOUR));
    await left(idOf(-MINUTE));
    await sweep();
    expect(await used()).toBe(2);
  });

  it('can still give its slot back where a sweep has seen it queued', async () => {
    await send().expect(200);
    clock.ms += HOUR;
    await sweep();
    provider.moods.push({ status: 422 });
    await drainJobs(test.app);
    expect(await logs()).toMatchObject([{ status: 'failed' }]);
    expect(await used()).toBe(0);
  });

  it('keeps its slot while it is queued, and where it was sent', async () => {
    await send().expect(200);
    clock.ms += HOUR;
    await sweep();
    expect(await used()).toBe(1);
    await drainJobs(test.app);
    const [{ _id } = { _id: new ObjectId() }] = await logs();
    await mailUsageStore(test.app).updateOne({ projectId: owner.project._id }, { $push: { open: _id } });
    await sweep();
    const usage = await mailUsageStore(test.app).findOne({ projectId: owner.project._id });
    expect(usage).toMatchObject({ used: 1, open: [] });
  });
});

describe('a mail of the service', () => {
  const code = { template: 'verification', to: 'ben@example.com' } as const;
  const variables = { code: '123456', projectName: 'p', minutes: 5 };

  it('costs no slot, and its code is in no log', async () => {
    owner.project = await updateProject(test.app, owner.project.name, { limits: { mail: 0 } });
    await sendSystemMail(test.app, owner.project, { ...code, variables });
    await drainJobs(test.app);
    const sent = provider.calls.filter(({ path }) => path === '/emails').map(({ body }) => body);
    expect(sent).toMatchObject([{ to: ['ben@example.com'] }]);
    expect(JSON.stringify(sent)).toContain('123456');
    expect(await logs()).toMatchObject([{ status: 'sent', to: ['ben@example.com'] }]);
    expect(JSON.stringify(await logs())).not.toContain('123456');
    expect(await used()).toBe(0);
  });

  it('has its subject in the log, and by whose key it goes', async () => {
    await setTemplate(test.app, owner.project, 'verification', {
      subject: '{{code}} of {{projectName}}',
      text: '{{code}}',
    });
    await sendSystemMail(test.app, owner.project, { ...code, variables });
    const own = await setMailSettings(test.app, owner.project, { providerApiKey: 're_own' });
    await sendSystemMail(test.app, own, { ...code, variables });
    const subject = '•••••• of p';
    expect(await logs()).toMatchObject([
      { subject, usingByok: false },
      { subject, usingByok: true },
    ]);
  });
});
