import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { App } from '../../../src/app.js';
import { mailLogStore } from '../../../src/features/mail/mail-log.js';
import { mailUsageStore } from '../../../src/features/mail/sending/mail-quota.js';
import { sendMailIdempotently, sendBatch } from '../../../src/features/mail/sending/idempotent-send.js';
import { sendMail } from '../../../src/features/mail/sending/send-mail.js';
import { projectStore } from '../../../src/features/projects/project-store.js';
import { REPEATED_REQUESTS } from '../../../src/features/quota/service-records.js';
import { jobStore } from '../../../src/platform/jobs/job.js';
import type { OutgoingMail, SendOutcome } from '../../../src/platform/mail-provider/mail-provider.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { slotsUsed } from '../../helpers/mail-quota.js';
import { useTestApp } from '../../helpers/use.js';

let owner: TestProject;

const test = await useTestApp({ settings: { BSVC_MAIL_FROM: 'service@example.test' } });
beforeEach(async () => {
  owner = await buildProject(test.app);
});

const item = (name: string) => ({ to: [`${name}@example.test`], subject: name, text: 'Hi' });
const MAIL = {
  to: ['ann@example.test'],
  variables: {},
  content: { kind: 'direct' as const, text: { subject: 'Hello', text: 'Hi' } },
};
const used = (): Promise<number> => slotsUsed(test.app, owner.project);

/** The app with a server that takes mails one by one, as SMTP does. */
function withServer(send: (mail: OutgoingMail, key: string) => Promise<SendOutcome>): App {
  return { ...test.app, mail: { name: 'smtp', send, findStatus: () => Promise.resolve(null) } };
}

describe('a batch that is sent one by one', () => {
  const OUTCOMES: Readonly<Record<string, SendOutcome>> = {
    taken: { outcome: 'accepted', id: 'm1' },
    parted: { outcome: 'accepted', id: 'm2', partial: 'bob@example.test: 550 no such user' },
    refused: { outcome: 'refused', reason: '550 no' },
    later: { outcome: 'later', reason: '451 later', retryAfterMs: null },
    lost: { outcome: 'unknown', reason: 'silence' },
  };

  it('tells the fate of each, in their order, and keeps the slots of those that left or may have', async () => {
    const names = Object.keys(OUTCOMES);
    const app = withServer(({ subject }) => Promise.resolve(OUTCOMES[subject]!));
    expect(await sendBatch(app, owner.project, names.map(item))).toEqual([
      { id: 'm1' },
      { id: 'm2', partial: 'bob@example.test: 550 no such user' },
      { error: { message: '550 no' } },
      { error: { message: '451 later' } },
      { error: { message: 'silence' } },
    ]);
    expect(await used()).toBe(3);
    expect(await mailUsageStore(test.app).findOne({ projectId: owner.project._id })).toMatchObject({ open: [] });
    const logs = await mailLogStore(test.app).find({ projectId: owner.project._id }).sort({ _id: 1 }).toArray();
    expect(logs.map(({ subject, status, reason = null }) => [subject, status, reason])).toEqual([
      ['taken', 'sent', null],
      ['parted', 'sent', expect.stringContaining('bob@example.test') as string],
      ['refused', 'failed', '550 no'],
      ['later', 'failed', '451 later'],
      ['lost', 'failed', 'silence'],
    ]);
  });

  it('has five under way, each with a key of its own', async () => {
    let [underWay, most] = [0, 0];
    const keys = new Set<string>();
    const app = withServer(async ({ subject }, key) => {
      keys.add(key);
      most = Math.max(most, ++underWay);
      await test.app.db.collection('mail_logs').findOne({});
      underWay--;
      return { outcome: 'accepted', id: subject };
    });
    const names = Array.from({ length: 12 }, (_, n) => `m${n}`);
    expect(await sendBatch(app, owner.project, names.map(item))).toEqual(names.map((id) => ({ id })));
    expect([most, keys.size]).toEqual([5, 12]);
  });
});

describe('a batch whose time is up', () => {
  afterEach(() => void vi.useRealTimers());

  it('says of a mail that is under way where its end will be told, and notes it there', async () => {
    let answer: (outcome: SendOutcome) => void = () => undefined;
    const slow = new Promise<SendOutcome>((resolve) => (answer = resolve));
    const app = withServer(({ subject }) =>
      subject === 'slow' ? slow : Promise.resolve({ outcome: 'accepted', id: subject }),
    );
    const logOf = (subject: string) => mailLogStore(test.app).findOne({ projectId: owner.project._id, subject });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const sending = sendBatch(app, owner.project, ['slow', 'fast'].map(item));
    while ((await logOf('fast'))?.status !== 'sent') await new Promise((resolve) => setImmediate(resolve));
    // Readers see a write before it is on the disk; when a later one is, the batch has been told of it.
    await mailLogStore(test.app).updateOne({ subject: 'fast' }, { $set: { status: 'sent' } });
    await vi.advanceTimersByTimeAsync(9_000);
    expect(await sending).toEqual([
      { error: { message: 'Under way: GET /api/mail/logs tells the end' } },
      { id: 'fast' },
    ]);
    answer({ outcome: 'accepted', id: 'after all' });
    while ((await logOf('slow'))?.status !== 'sent') await new Promise((resolve) => setImmediate(resolve));
    expect(await used()).toBe(2);
  });
});

it('a mail that its project has no room to keep is refused, and takes no slot', async () => {
  await projectStore(test.app).updateOne({ _id: owner.project._id }, { $set: { limits: { database: 0 } } });
  const project = (await projectStore(test.app).findOne({ _id: owner.project._id }))!;
  await expect(sendMail(test.app, project, MAIL)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  expect(await mailLogStore(test.app).countDocuments({ projectId: project._id })).toBe(0);
  expect(await used()).toBe(0);
});

describe('the second attempt by an Idempotency-Key whose first was cut off', () => {
  const keys = () =>
    test.app.db.collection<{ _id: string; answer: string | null; leaseUntil: Date }>(REPEATED_REQUESTS);
  const send = () => sendMailIdempotently(test.app, owner.project, MAIL, 'one');
  /** As if the process had died before it noted its answer. */
  const cutOff = async (): Promise<void> => {
    await keys().updateMany({}, { $set: { answer: null, leaseUntil: new Date(0) } });
    await jobStore(test.app).deleteMany({});
  };
  const queued = (): Promise<number> => jobStore(test.app).countDocuments({ pool: 'mail.deliver' });

  it('hands a mail that waits to the worker again, and one that was sent to nobody', async () => {
    const first = await send();
    await cutOff();
    expect(await send()).toEqual(first);
    expect(await queued()).toBe(1);
    await cutOff();
    await mailLogStore(test.app).updateMany({ projectId: owner.project._id }, { $set: { status: 'sent' } });
    expect(await send()).toEqual(first);
    expect(await queued()).toBe(0);
    expect(await used()).toBe(1);
  });

  it('sends a mail that was never written, with the slot that was taken for it once', async () => {
    const first = await send();
    await cutOff();
    await mailLogStore(test.app).deleteMany({ projectId: owner.project._id });
    expect(await send()).toEqual(first);
    expect([await queued(), await used()]).toEqual([1, 1]);
  });
});
