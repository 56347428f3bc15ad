import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setMailSettings } from '../../../../src/features/mail/project-mail.js';
import { holdTurns } from '../../../../src/features/mail/sending/provider-pace.js';
import { sendMail, sendSystemMail } from '../../../../src/features/mail/sending/send-mail.js';
import type { Project } from '../../../../src/features/projects/project.js';
import { updateProject } from '../../../../src/features/projects/update-project.js';
import { jobStore } from '../../../../src/platform/jobs/job.js';
import { createWorker, type Worker } from '../../../../src/worker.js';
import { buildProject } from '../../../helpers/build-project.js';
import { eventually } from '../../../helpers/eventually.js';
import { startMailProviderDouble, type MailProviderDouble } from '../../../helpers/mail-provider-double.js';
import { openTestApp, type TestApp } from '../../../helpers/open-test-app.js';

let test: TestApp;
let provider: MailProviderDouble;
let worker: Worker | null;

beforeEach(async () => {
  worker = null;
  provider = await startMailProviderDouble();
  const settings = {
    RESEND_API_KEY: 're_service',
    RESEND_BASE_URL: provider.url,
    BSVC_MAIL_FROM: 'a@b.co',
    BSVC_MAIL_RATE: '50/1s',
  };
  test = await openTestApp({ settings });
});
afterEach(async () => {
  await worker?.stop(5_000);
  await test.close();
  await provider.close();
});

async function buildSender(): Promise<Project> {
  const { project } = await buildProject(test.app);
  return updateProject(test.app, project._id.toHexString(), { limits: { mail: 1_000 } });
}

async function queue(project: Project, name: string, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const content = { kind: 'direct', text: { subject: name, text: 'x' } } as const;
    await sendMail(test.app, project, { to: ['a@b.co'], content, variables: {} } as never);
  }
}

const queueCode = (project: Project): Promise<void> =>
  sendSystemMail(test.app, project, {
    template: 'verification',
    to: 'code@b.co',
    variables: { code: '123456', projectName: 'p', minutes: 5 },
  });

/** Who was served, in order: the subject of a mail, or `code`. */
const order = (): string[] => provider.accepted.map(({ to, subject }) => (to[0] === 'code@b.co' ? 'code' : subject));

async function sendAll(count: number): Promise<string[]> {
  worker = createWorker(test.app);
  await eventually('all of it is sent', () => provider.accepted.length === count);
  return order();
}

describe('mail of several projects through one key of the provider', () => {
  it('is sent in turns, however much one of them has queued before', async () => {
    const [big, small, other] = [await buildSender(), await buildSender(), await buildSender()];
    await queue(big, 'big', 40);
    await queue(small, 'small', 4);
    await queue(other, 'other', 4);
    const served = await sendAll(48);
    // Each of the three at most one turn behind another, and two in hand when it came.
    expect(served.lastIndexOf('small')).toBeLessThan(4 * 3 + 3);
    expect(served.lastIndexOf('other')).toBeLessThan(4 * 3 + 3);
    expect(served.slice(15)).toEqual(Array(33).fill('big'));
  });

  it('lets a code go first, also while much is in hand', async () => {
    const projects = await Promise.all(Array.from({ length: 6 }, buildSender));
    for (const [at, project] of projects.entries()) await queue(project, `p${at}`, 10);
    worker = createWorker(test.app);
    await eventually('mail is on its way', () => provider.accepted.length >= 5);
    await queueCode(projects[0]!);
    const sent = provider.accepted.length;
    await eventually('all of it is sent', () => provider.accepted.length === 61);
    // What was being sent when the code came, and what was sent until the worker saw it.
    expect(order().indexOf('code')).toBeLessThan(sent + 12);
  });

  it('lets codes of all projects go before all mail that waits', async () => {
    const projects = await Promise.all(Array.from({ length: 3 }, buildSender));
    for (const project of projects) await queue(project, 'mail', 10);
    for (const project of projects) await queueCode(project);
    const served = await sendAll(33);
    expect(served.lastIndexOf('code')).toBeLessThan(6);
  });
});

describe('mail of a project whose own provider asked for silence', () => {
  it('keeps no other project’s mail waiting, and its tries count on', async () => {
    const silent = await setMailSettings(test.app, await buildSender(), { providerApiKey: 're_silent' });
    await holdTurns(test.app, silent, 3_600_000);
    await queue(silent, 'silent', 30);
    await queue(await buildSender(), 'other', 3);
    expect(await sendAll(3)).toEqual(['other', 'other', 'other']);
    await eventually('all that waits is put off', async () => {
      const jobs = await jobStore(test.app).find({ pool: 'mail.deliver' }).toArray();
      return jobs.every(({ state, runAt }) => state === 'queued' && runAt.getTime() > Date.now() + 3_000_000);
    });
    const jobs = await jobStore(test.app).find({ pool: 'mail.deliver' }).toArray();
    expect(jobs.map(({ attempts }) => attempts)).toEqual(Array(30).fill(0));
  });
});
