import { ObjectId } from 'bson';
import fc from 'fast-check';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { drainJobs, sweepMail } from '../../world/jobs.js';
import { updateProject } from '../../world/projects.js';
import { mailLogStore, commitMailQuota, mailUsageStore, readMailQuota, reserveMailQuota } from '../../world/stored.js';
import { runs } from '../../helpers/runs.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { startMailProviderDouble, type Mood } from '../../helpers/mail-provider-double.js';
import { openSeed } from '../../helpers/seed.js';
import { use, useTestApp } from '../../helpers/use.js';

const LIMIT = 8;
const MINUTE = 60_000;

const clock = createFakeClock(Date.now());

const provider = use(await startMailProviderDouble());
const test = await useTestApp({
  clock,
  settings: {
    RESEND_API_KEY: 're_platform',
    RESEND_BASE_URL: provider.url,
    BSVC_MAIL_FROM: 'Service <no-reply@bsvc.test>',
    BSVC_MAIL_RATE: 'off',
  },
});

const MOODS: Record<string, Mood> = {
  failing: { status: 500 },
  refusing: { status: 422 },
  busy: { status: 429, name: 'rate_limit_exceeded', headers: { 'retry-after': '1' } },
  resetting: 'reset',
  silent: 'accept-silently',
};

/** Slots that a month begins with: of many mails only the last few can tell how the quota ends. */
const USED_BEFORE = LIMIT - 4;
const recipient = fc.constantFrom('ann@example.com', 'ben@example.com', 'refused@example.com', 'no address');
const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: fc.constant('send' as const), to: recipient, key: fc.nat({ max: 5 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('batch' as const),
      to: fc.array(recipient, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('mood' as const), mood: fc.constantFrom(...Object.keys(MOODS)) }),
  },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('work' as const), minutes: fc.constantFrom(0, 1, 10) }) },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

const UP_TO_THE_BOUND: Action[] = Array.from({ length: LIMIT - USED_BEFORE + 1 }, () => ({
  ...{ what: 'send', to: 'ann@example.com', key: 5 },
}));

const mailTo = (to: string) => ({ to, subject: 'Hello', text: `Hi ${to}` });

/** The status of a request; 0 for what is none. */
async function perform(owner: TestProject, one: Action): Promise<number> {
  const post = (path: string, body: object) =>
    request(test.server).post(path).set('x-api-key', owner.secret).send(body);
  if (one.what === 'mood') {
    provider.moods.push(MOODS[one.mood]!);
  } else if (one.what === 'work') {
    clock.advance(one.minutes * MINUTE);
    await drainJobs(test.app);
  } else if (one.what === 'send') {
    const sent = post('/api/mail/send', mailTo(one.to));
    const { status } = await (one.key < 3 ? sent.set('Idempotency-Key', `${one.to.charAt(0)}${one.key}`) : sent);
    expect([200, 400, 429]).toContain(status);
    return status;
  } else {
    // A call that nobody answered is not known to have been made: its slots stay taken.
    provider.moods.length = 0;
    const { status } = await post('/api/mail/send-batch', one.to.map(mailTo));
    expect([200, 400, 429]).toContain(status);
    return status;
  }
  return 0;
}

/** Works on what is queued until nothing is. */
async function finish(owner: TestProject): Promise<void> {
  provider.moods.length = 0;
  const queued = () => mailLogStore(test.app).countDocuments({ projectId: owner.project._id, status: 'queued' });
  for (let round = 0; round < 30 && (await queued()) > 0; round++) {
    clock.advance(30 * MINUTE);
    await drainJobs(test.app);
  }
  expect(await queued()).toBe(0);
  await sweepMail.run(test.app, undefined as never, undefined as never);
}

describe('any sequence of what happens to the mail of a project', () => {
  it('takes a slot for each mail that was sent, for no other, and never more than there are', async () => {
    const seed = openSeed('mail');
    let mostUsed = 0;
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 20 }), async (actions) => {
        const owner = await buildProject(test.app);
        await updateProject(test.app, owner.project.name, { limits: { mail: LIMIT } });
        const ids = Array.from({ length: USED_BEFORE }, () => new ObjectId());
        await reserveMailQuota(test.app, owner.project, ids);
        await commitMailQuota(test.app, owner.project._id, ids);
        const before = provider.accepted.length;
        for (const one of actions) {
          refused += (await perform(owner, one)) === 429 ? 1 : 0;
          const { used } = await readMailQuota(test.app, owner.project);
          expect(used).toBeLessThanOrEqual(LIMIT);
          mostUsed = Math.max(mostUsed, used);
        }
        await finish(owner);
        const sent = await mailLogStore(test.app).countDocuments({ projectId: owner.project._id, status: 'sent' });
        expect(provider.accepted.length - before).toBe(sent);
        // A month may have ended meanwhile.
        const months = await mailUsageStore(test.app).find({ projectId: owner.project._id }).toArray();
        expect(months.reduce((sum, { used }) => sum + used, 0)).toBe(USED_BEFORE + sent);
        expect(months.flatMap(({ open, calls = [] }) => [...open, ...calls])).toEqual([]);
      }),
      // One that surely reaches the very bound, and a refusal there.
      { numRuns: runs(40), seed, examples: [[UP_TO_THE_BOUND]] },
    );
    expect(mostUsed).toBe(LIMIT);
    expect(refused).toBeGreaterThan(0);
  });
});
