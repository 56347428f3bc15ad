import { beforeEach, expect, it } from 'vitest';
import { forgetMailsJob } from '../../../src/features/mail/forget-mails.js';
import { mailLogStore, queuedLog } from '../../../src/features/mail/mail-log.js';
import { readMailRequest } from '../../../src/features/mail/read-mail.js';
import { mailUsageStore } from '../../../src/features/mail/sending/mail-quota.js';
import { sendMail } from '../../../src/features/mail/sending/send-mail.js';
import { sweepMail } from '../../../src/features/mail/sending/sweep-mail.job.js';
import { listOutbox } from '../../../src/platform/mail-provider/outbox.js';
import { drainJobs } from '../../../src/worker.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { slotsUsed } from '../../helpers/mail-quota.js';
import { useTestApp } from '../../helpers/use.js';

const HOUR_MS = 3_600_000;
// Ids of logs carry the system's time, so this clock goes with it.
const clock = { aheadMs: 0, now: () => Date.now() + clock.aheadMs };
let owner: TestProject;

const test = await useTestApp({ clock, settings: { BSVC_KEEP: '10h' } });
beforeEach(async () => {
  await mailLogStore(test.app).deleteMany({});
  await test.app.db.collection('mail_outbox').deleteMany({});
  owner = await buildProject(test.app);
});

async function send(subject: string): Promise<void> {
  await sendMail(test.app, owner.project, readMailRequest({ to: 'ann@example.com', subject, text: 'Hello' }));
  await drainJobs(test.app);
}

/** Lets time pass, and whatever runs by it. */
async function pass(hours: number): Promise<void> {
  clock.aheadMs += hours * HOUR_MS;
  for (const job of [forgetMailsJob, sweepMail]) await test.app.jobs.enqueue(job, {});
  await drainJobs(test.app);
}

const kept = async () => ({
  logs: (await mailLogStore(test.app).find({}).sort({ _id: 1 }).toArray()).map(({ subject }) => subject),
  texts: (await listOutbox(test.app)).map(({ subject }) => subject).reverse(),
});

it('removes logs and kept mails after their time', async () => {
  await send('first');
  await pass(6);
  await send('second');
  await pass(3);
  expect(await kept()).toEqual({ logs: ['first', 'second'], texts: ['first', 'second'] });
  await pass(2);
  expect(await kept()).toEqual({ logs: ['second'], texts: ['second'] });
  await pass(6);
  expect(await kept()).toEqual({ logs: [], texts: [] });
  expect(await slotsUsed(test.app, owner.project)).toBe(2);
});

it('removes more of them than are removed at once', async () => {
  const at = new Date(clock.now());
  const logs = Array.from({ length: 1_100 }, (_, n) => {
    const mail = { from: 'a@b.co', to: ['ann@example.com'], subject: `${n}`, text: 'Hello' };
    return { ...queuedLog(test.app, owner.project._id, mail, { usingByok: false }), status: 'sent' as const };
  });
  await mailLogStore(test.app).insertMany(logs);
  const texts = logs.map(({ _id }) => ({ _id: _id.toHexString(), to: [], encrypted: '', createdAt: at }));
  await test.app.db.collection<(typeof texts)[number]>('mail_outbox').insertMany(texts);
  await pass(11);
  expect(await kept()).toEqual({ logs: [], texts: [] });
});

it('removes nothing that waits, however long', async () => {
  const mail = { from: 'a@b.co', to: ['ann@example.com'], subject: 'waits', text: 'Hello' };
  await mailLogStore(test.app).insertOne(queuedLog(test.app, owner.project._id, mail, { usingByok: false }));
  clock.aheadMs += 20 * HOUR_MS;
  await test.app.jobs.enqueue(forgetMailsJob, {});
  await drainJobs(test.app);
  expect((await kept()).logs).toEqual(['waits']);
});

it('gives back no slot of a mail that was sent, whose log is gone', async () => {
  await send('one');
  const log = (await mailLogStore(test.app).findOne({}))!;
  // As a process leaves it that is killed between the two.
  await mailUsageStore(test.app).updateOne({ projectId: owner.project._id }, { $push: { open: log._id } });
  await pass(11);
  expect((await kept()).logs).toEqual([]);
  expect(await slotsUsed(test.app, owner.project)).toBe(1);
});
