import fc from 'fast-check';
import type { Response } from 'supertest';
import { expect, it } from 'vitest';
import { drainJobs } from '../../world/jobs.js';
import { type SignInSettings, changeProject } from '../../world/projects.js';
import { COUNTERS, jobStore, counterId } from '../../world/stored.js';
import { disableUser, requireUser, totpCode, ONE_TIME_CODES, findPendingEmail } from '../../world/users.js';
import { buildProject } from '../../helpers/build-project.js';
import { listenToCommands } from '../../helpers/command-log.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openSeed } from '../../helpers/seed.js';
import { use, useTestApp } from '../../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD } from '../../helpers/user-client.js';

// accounts.md 7.4: whatever a stranger sends, and however often, an address that has an account is answered, costs and
// queues what one without does. Sign-up is left out: it says itself that an address is taken (rest-api.md 4.1).

const MINUTE_MS = 60_000;
const REDIRECT = 'https://shop.example/in';
const clock = createFakeClock();
const reached: Record<string, number> = {};
const seed = openSeed('nothing told');

const test = await useTestApp({
  settings: { BSVC_BCRYPT_COST: '4', BSVC_ANONYMOUS_RATE_LIMIT: 'off', BSVC_TRUST_PROXY: '1' },
  clock,
});
const made = await buildProject(test.app);
const signIn: SignInSettings = { codeLogin: 'existing', mfa: 'optional', redirects: [REDIRECT], anonymous: true };
const shop = { ...made, project: await changeProject(test.app, made.project, { signIn }) };
const client = openUserClient(test, shop.publishable);
const server = openUserClient(test, shop.secret);
const log = use(listenToCommands());

/** Of the owners: from there they may go on when strangers guess (decision 26). */
const HOME = { 'x-forwarded-for': '203.0.113.9' };

/** What an address may stand for; each makes its account. */
const KINDS: Readonly<Record<string, (email: string) => Promise<unknown>>> = {
  nobody: () => Promise.resolve(),
  'an unproven address': (email) => client.signUp({ email }, HOME),
  'a proven address': (email) => server.post('/users', { email, password: PASSWORD, emailVerified: true }),
  'an account without a password': (email) => server.post('/users', { email, emailVerified: true }),
  'a disabled account': async (email) => {
    await client.signUp({ email }, HOME);
    await disableUser(test.app, shop.project, await requireUser(test.app, shop.project._id, email));
  },
  'an account with a second factor': async (email) => {
    await server.post('/users', { email, password: PASSWORD, emailVerified: true });
    const { accessToken } = (await client.logIn(email, PASSWORD, HOME)).body as { accessToken: string };
    const begun = await client.post('/mfa/totp', undefined, bearer(accessToken));
    const { secret } = (begun.body as { data: { secret: string } }).data;
    const confirmed = await client.post(
      '/mfa/totp/confirm',
      { code: totpCode(secret, clock.now()) },
      bearer(accessToken),
    );
    expect(confirmed.status).toBe(200);
  },
};

/** Six digits that no mail held: not even by chance right for one address and wrong for another. */
async function unsentCode(): Promise<string> {
  const ids = await test.app.db.collection<{ _id: string }>(ONE_TIME_CODES).find({}).toArray();
  const letters = await Promise.all(ids.map(({ _id }) => findPendingEmail(test.app, _id)));
  for (const letter of letters) if (letter) sent.add(letter.code);
  let code = 0;
  while (sent.has(String(code).padStart(6, '0'))) code++;
  return String(code).padStart(6, '0');
}
const sent = new Set<string>();

type Send = (email: string, otp: string) => PromiseLike<Response>;
const REQUESTS: Readonly<Record<string, Send>> = {
  login: (email) => client.logIn(email, 'not the password'),
  'login/code': (email) => client.post('/login/code', { email }),
  'login/code with a page': (email) => client.post('/login/code', { email, redirect: REDIRECT }),
  'login/code/verify': (email, otp) => client.post('/login/code/verify', { email, otp }),
  'request-password-reset': (email) => client.post('/request-password-reset', { email }),
  'reset-password': (email, otp) => client.post('/reset-password', { email, otp, newPassword: 'a brand new one' }),
  'verify-email': (email, otp) => client.post('/verify-email', { email, otp }),
  'resend-verification-otp': (email) => client.post('/resend-verification-otp', { email }),
  async 'update-profile of a guest'(email) {
    const { accessToken } = (await client.post('/signup/anonymous')).body as { accessToken: string };
    return client.send('patch', '/update-profile', { email }, bearer(accessToken));
  },
};
const WAITS = { 'a minute': MINUTE_MS, 'an hour': 60 * MINUTE_MS, 'a day': 25 * 60 * MINUTE_MS };
/** Where an address had a wrong password, it has had a hundred, from many places. */
const MANY_FAILURES = 'failures from many places';

async function failFromManyPlaces(emails: Iterable<string>): Promise<void> {
  const ids = [...emails].map((email) => counterId(test.app, shop.project._id, 'failures', email));
  const at = Array<Date>(100).fill(new Date(clock.now()));
  const counters = test.app.db.collection<{ _id: string; at: Date[] }>(COUNTERS);
  await counters.updateMany({ _id: { $in: ids } }, { $set: { at } });
}

/** What the service keeps of accounts; all else is read for many requests together, or by what runs beside them. */
const OF_ACCOUNTS = /^(documents_.*|one_time_codes|counters|jobs|sessions|social_identities|passkeys|one_time_tokens)$/;
/** The size of a project is measured now and then, whoever is asked about. */
const MEASURES = ['aggregate', 'count', 'collStats'];

/** What a request showed, did to the store and left to be done. */
async function observe(send: Send, email: string, otp: string): Promise<object> {
  const jobs = async (): Promise<string[]> => (await jobStore(test.app).find({}).toArray()).map(({ name }) => name);
  const before = await jobs();
  const from = log.seen.length;
  const { status, body, headers } = await send(email, otp);
  const commands = log.seen.slice(from).flatMap(({ name, body: command }) => {
    const of = command[name];
    return typeof of === 'string' && OF_ACCOUNTS.test(of) && !MEASURES.includes(name) ? [`${name} ${of}`] : [];
  });
  // What a guest is told of itself.
  const { requestId: _, data: __, pendingEmail: ___, ...told } = body as Record<string, unknown>;
  const after = await jobs();
  return {
    status,
    told,
    headers: Object.keys(headers).sort(),
    commands,
    queued: after.length - before.length,
  };
}

it('answers, does and queues the same for every address, after any history', async () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...Object.keys(REQUESTS)) },
      { weight: 1, arbitrary: fc.constantFrom(...Object.keys(WAITS), MANY_FAILURES) },
    ),
    { minLength: 4, maxLength: 14 },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (drawn) => {
      const history = [...drawn, ...Object.keys(REQUESTS), 'a minute', MANY_FAILURES, 'login'];
      const emails = new Map(Object.keys(KINDS).map((kind) => [kind, buildEmail()]));
      for (const [kind, email] of emails) await KINDS[kind]!(email);
      await drainJobs(test.app);
      // Making an account mails a code, so the address of nobody gets a history, too: anybody can ask for one.
      for (const email of emails.values()) {
        for (const path of ['/resend-verification-otp', '/request-password-reset', '/login/code']) {
          await client.post(path, { email });
        }
      }
      await drainJobs(test.app);
      clock.advance(WAITS['a day']);
      for (const what of history) {
        reached[what] = (reached[what] ?? 0) + 1;
        if (what === MANY_FAILURES) {
          await failFromManyPlaces(emails.values());
          continue;
        }
        if (what in WAITS) {
          clock.advance(WAITS[what as keyof typeof WAITS]);
          continue;
        }
        const otp = await unsentCode();
        const seen = new Map<string, object>();
        for (const [kind, email] of emails) seen.set(kind, await observe(REQUESTS[what]!, email, otp));
        await unsentCode();
        await drainJobs(test.app);
        for (const [kind, each] of seen) expect({ what, kind, ...each }).toEqual({ what, kind, ...seen.get('nobody') });
      }
    }),
    { seed, numRuns: Number(process.env.BSVC_TEST_RUNS ?? 1), endOnFailure: true },
  );
  console.log(`reached: ${JSON.stringify(reached)}`);
  expect(Object.keys(reached)).toEqual(expect.arrayContaining(Object.keys(REQUESTS)));
});
