import { Webhook } from 'svix';
import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import { createBroadcast, sendBroadcast } from '../../../src/features/mail/provider-routes.js';
import { deliverMail } from '../../../src/features/mail/sending/deliver-mail.job.js';
import { listMailLogs, mailLogStore, type MailLog } from '../../../src/features/mail/mail-log.js';
import { setMailSettings } from '../../../src/features/mail/project-mail.js';
import { readBatch, readMailRequest } from '../../../src/features/mail/read-mail.js';
import { receiveMailEvent } from '../../../src/features/mail/receive-mail-event.js';
import { sendBatch } from '../../../src/features/mail/sending/idempotent-send.js';
import { sendMail } from '../../../src/features/mail/sending/send-mail.js';
import { sweepMail } from '../../../src/features/mail/sending/sweep-mail.job.js';
import type { Project } from '../../../src/features/projects/project.js';
import { drainJobs } from '../../../src/worker.js';
import { buildProject } from '../../helpers/build-project.js';
import { slotsUsed } from '../../helpers/mail-quota.js';
import { startMailProviderDouble } from '../../helpers/mail-provider-double.js';
import { use, useTestApp } from '../../helpers/use.js';
import { Crash, crashAfter, sleepBefore } from '../files/crashing-app.js';

const SECRET = `whsec_${Buffer.from('the secret of the service, 32 by').toString('base64')}`;
const MAIL = { to: 'ann@example.com', subject: 'Hello', text: 'Hi' };
const TEN_MINUTES = 10 * 60_000;

// Ids of logs carry the system's time, so this clock goes with it.
const clock = { aheadMs: 0, now: () => Date.now() + clock.aheadMs };
let project: Project;

const provider = use(await startMailProviderDouble());
const test = await useTestApp({
  clock,
  settings: {
    RESEND_API_KEY: 're_platform',
    RESEND_BASE_URL: provider.url,
    BSVC_MAIL_FROM: 'a@b.co',
    BSVC_MAIL_RATE: 'off',
    PROVIDER_WEBHOOK_SECRET: SECRET,
  },
});
const app = test.app;
beforeEach(async () => {
  await drainJobs(app);
  provider.moods.length = 0;
  ({ project } = await buildProject(app));
});

const send = (sender: App, mail = MAIL): Promise<unknown> => sendMail(sender, project, readMailRequest(mail));
const used = (): Promise<number> => slotsUsed(app, project);
const onlyLog = async (): Promise<MailLog> => (await mailLogStore(app).findOne({ projectId: project._id })) as MailLog;
const deliver = async (worker: App): Promise<unknown> =>
  deliverMail.run(worker, { mailLogId: (await onlyLog())._id.toHexString() }, { attempt: 1 } as never);

async function sweepLater(): Promise<void> {
  clock.aheadMs += TEN_MINUTES;
  await sweepMail.run(app, {}, {} as never);
}

let events = 0;

/** What the provider says of its mail, signed. */
function say(type: string, emailId: string, id = `msg_${++events}`): Promise<string> {
  const body = JSON.stringify({ type, data: { email_id: emailId, bounce: { message: 'mailbox full' } } });
  const at = new Date();
  const headers = {
    id,
    timestamp: String(Math.floor(at.getTime() / 1000)),
    signature: new Webhook(SECRET).sign(id, at, body),
  };
  return receiveMailEvent(app, { read: () => Promise.resolve(Buffer.from(body)), headers, project: null });
}

const nextEmailId = (): string => `email-${provider.accepted.length + 1}`;

describe('what the provider says before the mail’s id is known here', () => {
  it.each([
    [['email.delivered', 'email.sent'], 'delivered', null],
    [['email.complained', 'email.delivered'], 'complained', null],
    [['email.sent', 'email.bounced'], 'bounced', 'mailbox full'],
  ] as const)('takes effect when it is: %j', async (types, status, reason) => {
    await send(app);
    for (const type of types) expect(await say(type, nextEmailId())).toBe('Webhook processed');
    await drainJobs(app);
    expect(await onlyLog()).toMatchObject({ status, reason });
    expect(await used()).toBe(1);
  });

  it('takes effect for an item of a batch', async () => {
    await say('email.delivered', nextEmailId());
    await sendBatch(app, project, readBatch([MAIL]));
    expect((await onlyLog()).status).toBe('delivered');
  });

  it('takes effect though the worker died right after it noted the id', async () => {
    await send(app);
    await say('email.delivered', nextEmailId());
    await expect(deliver(crashAfter(app, 1).app)).rejects.toThrow(Crash);
    expect((await onlyLog()).status).toBe('sent');
    await deliver(app);
    expect((await onlyLog()).status).toBe('delivered');
  });

  it('takes effect when it is told again, if its first process died in the middle', async () => {
    await send(app);
    await drainJobs(app);
    const { providerEmailId } = await onlyLog();
    const kept = { _id: 'service:msg_dead', projectId: null, providerEmailId, status: 'bounced', reason: 'full' };
    await app.db.collection('mail_events').insertOne({ ...kept, seenAt: new Date() } as never);
    expect(await say('email.bounced', providerEmailId!, 'msg_dead')).toBe('Webhook already processed');
    expect((await onlyLog()).status).toBe('bounced');
  });
});

describe('the slot of a process that died', () => {
  it('is given back once when its mail was never written', async () => {
    await expect(send(crashAfter(app, 1).app)).rejects.toThrow(Crash);
    expect(await used()).toBe(1);
    await sweepLater();
    await sweepLater();
    expect(await used()).toBe(0);
  });

  it('stays taken when a broadcast may have left', async () => {
    const own = await setMailSettings(app, project, { providerApiKey: 're_own' });
    const draft = (await createBroadcast(app, own, { segmentId: 'a1', subject: 's', text: 't' })) as { id: string };
    await expect(sendBroadcast(crashAfter(app, 1).app, own, draft.id, {})).rejects.toThrow(Crash);
    await sweepLater();
    expect(await used()).toBe(1);
    await send(app);
    expect(await used()).toBe(2);
  });

  it.each([1, 2, 3])('is settled or given back once whatever its change %i was', async (after) => {
    await send(app);
    provider.moods.push({ status: 422 });
    await deliver(crashAfter(app, after).app).catch(() => undefined);
    await deliver(app);
    await deliver(app);
    expect((await onlyLog()).status).toBe('failed');
    expect(await used()).toBe(0);
  });
});

describe('a worker that lost its mail to another', () => {
  it('neither calls failed what the other has sent nor gives its slot back', async () => {
    await send(app);
    provider.moods.push({ status: 422 });
    // Steps of a delivery: the log is read, the project is read, what came of it is noted.
    const sleeper = sleepBefore(app, 3);
    const late = deliver(sleeper.app);
    await sleeper.reached;
    // The other stands between its note and the settling of the slot.
    const other = sleepBefore(app, 4);
    const sent = deliver(other.app);
    await other.reached;
    sleeper.wake();
    await late;
    other.wake();
    await sent;
    expect((await onlyLog()).status).toBe('sent');
    expect(await used()).toBe(1);
  });
});

describe('GET /api/mail/logs', () => {
  it('is sorted by sentAt: a mail that left late comes before one that was queued after it', async () => {
    provider.moods.push({ status: 500 });
    await send(app, { ...MAIL, subject: 'late' });
    await drainJobs(app);
    clock.aheadMs += 1000;
    await send(app, { ...MAIL, subject: 'at once' });
    await drainJobs(app);
    clock.aheadMs += TEN_MINUTES;
    await drainJobs(app);
    const { items } = await listMailLogs(app, project);
    expect(items.map(({ subject }) => subject)).toEqual(['late', 'at once']);
    expect(items[0]!.sentAt > items[1]!.sentAt).toBe(true);
  });
});
