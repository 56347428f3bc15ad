import { expect, it } from 'vitest';
import { changeProject } from '../../../src/features/declaration/plan-projects.js';
import { findPendingEmail, openCode } from '../../../src/features/users/codes/one-time-code.js';
import { totpCode } from '../../../src/features/users/factors/totp.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { countCommits, listenToCommands } from '../../helpers/command-log.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openAuthenticator } from '../../helpers/soft-authenticator.js';
import { bearer, buildEmail, openUserClient, PASSWORD } from '../../helpers/user-client.js';
import { use, useTestApp } from '../../helpers/use.js';

// What signing in costs the store (accounts.md 6), counted: a commit takes longer than all else of a sign-in together.

const STEP_MS = 30_000;
const SITE = { rpId: 'shop.example', origin: 'https://app.shop.example' };
const device = openAuthenticator(SITE.rpId, SITE.origin);
const clock = createFakeClock();

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const made = await buildProject(test.app);
const passkeys = { rpId: SITE.rpId, origins: [SITE.origin] };
const signIn = { codeLogin: 'existing', mfa: 'optional', passkeys } as const;
const shop: TestProject = { ...made, project: await changeProject(test.app, made.project, { signIn }) };
const client = openUserClient(test, shop.publishable);
const log = use(listenToCommands());

interface Account {
  email: string;
  token: string;
}

async function buildAccount(): Promise<Account> {
  const email = buildEmail();
  await openUserClient(test, shop.secret).post('/users', { email, password: PASSWORD, emailVerified: true });
  const { accessToken } = (await client.logIn(email)).body as { accessToken: string };
  return { email, token: accessToken };
}

/** An account with an app, and the code of its next half minute. */
async function buildFactored(): Promise<Account & { nextCode(): string }> {
  const account = await buildAccount();
  const begun = await client.post('/mfa/totp', {}, bearer(account.token));
  const { secret } = (begun.body as { data: { secret: string } }).data;
  await client.post('/mfa/totp/confirm', { code: totpCode(secret, clock.now()) }, bearer(account.token));
  clock.advance(STEP_MS);
  return { ...account, nextCode: () => totpCode(secret, clock.now()) };
}

const challenge = async (): Promise<{ challenge: string }> =>
  (await client.post('/login/passkey/options')).body as { challenge: string };

async function halfSignedIn(email: string): Promise<string> {
  return ((await client.logIn(email)).body as { data: { mfaToken: string } }).data.mfaToken;
}

/** Each prepares a sign-in and answers how to send it. */
const WAYS = {
  async 'a password'() {
    const { email } = await buildAccount();
    return () => client.logIn(email);
  },
  async 'a mailed code'() {
    const { email } = await buildAccount();
    const { _id } = shop.project;
    const opened = await openCode(test.app, _id, 'login', email, () => Promise.resolve([]), { network: '' });
    const { code: otp } = (await findPendingEmail(test.app, (opened as { id: string }).id))!;
    return () => client.post('/login/code/verify', { email, otp });
  },
  async 'a passkey'() {
    const { token } = await buildAccount();
    const begun = (await client.post('/passkeys/options', {}, bearer(token))).body as { challenge: string };
    await client.post('/passkeys', { response: device.create(begun) }, bearer(token));
    const response = device.get(await challenge());
    return () => client.post('/login/passkey', { response });
  },
  async 'a second factor'() {
    const { email, nextCode } = await buildFactored();
    const mfaToken = await halfSignedIn(email);
    return () => client.post('/login/mfa', { mfaToken, totp: nextCode() });
  },
};

it.each([
  ['a password', 1],
  ['a mailed code', 2],
  ['a passkey', 1],
  ['a second factor', 6],
] as const)('%s opens a session by %i commits', async (way, most) => {
  const send = await WAYS[way]();
  await test.app.backgroundTasks.idle();
  const count = countCommits();
  const reply = await send();
  const commits = count.stop();
  expect(reply.status).toBe(200);
  expect(commits).toBe(most);
});

it('asks an account with an app for its code at the cost of one read more', async () => {
  const costOf = async (email: string, status: number): Promise<{ reads: number; commits: number }> => {
    // What is noted after an answer belongs to its request: on a busy machine it would be seen in the next one's.
    await test.app.backgroundTasks.idle();
    const from = log.seen.length;
    const count = countCommits();
    expect((await client.logIn(email)).status).toBe(status);
    await test.app.backgroundTasks.idle();
    return { reads: log.seen.slice(from).filter(({ name }) => name === 'find').length, commits: count.stop() };
  };
  const [plain, factored] = [await buildAccount(), await buildFactored()];
  // Copies of project and collection are read again after half a second: the least of some is what a sign-in costs.
  const leastOf = async (email: string, status: number): Promise<{ reads: number; commits: number }> => {
    const costs = [await costOf(email, status), await costOf(email, status), await costOf(email, status)];
    const least = (values: number[]): number => Math.min(...values);
    return { reads: least(costs.map(({ reads }) => reads)), commits: least(costs.map(({ commits }) => commits)) };
  };
  const without = await leastOf(plain.email, 200);
  const asked = await leastOf(factored.email, 401);
  expect(asked.commits).toBe(without.commits);
  // Where it opens the session, the transaction reads the account once more, by no command.
  expect(asked.reads).toBeLessThanOrEqual(without.reads + 2);
});
