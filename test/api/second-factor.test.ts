import request, { type Response } from 'supertest';
import { describe, expect, it } from 'vitest';
import { drainJobs, listOutbox } from '../world/jobs.js';
import { rotateSecrets } from '../world/operators.js';
import { type SignInSettings, changeProject } from '../world/projects.js';
import { totpCode } from '../world/users.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';
import {
  bearer,
  buildEmail,
  countMails,
  openUserClient,
  PASSWORD,
  readMailedCode,
  type UserClient,
} from '../helpers/user-client.js';

const clock = createFakeClock();
const STEP_MS = 30_000;
const HOUR_MS = 3_600_000;

interface Shop extends TestProject {
  client: UserClient;
  server: UserClient;
}

async function openShop(signIn: SignInSettings): Promise<Shop> {
  const made = await buildProject(test.app);
  const project = await changeProject(test.app, made.project, { signIn });
  const [client, server] = [openUserClient(test, made.publishable), openUserClient(test, made.secret)];
  return { ...made, project, client, server };
}

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const shop = await openShop({ mfa: 'optional', codeLogin: 'existing' });

const codeOf = (reply: Response): string => `${reply.status} ${(reply.body as { code?: string }).code ?? ''}`;
const tokenOf = (reply: Response): string => (reply.body as { accessToken: string }).accessToken;
const dataOf = <T>(reply: Response): T => (reply.body as { data: T }).data;
const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>;

interface Account {
  email: string;
  token: string;
  secret: string;
  recovery: string[];
}

/** The code of the next half minute: each is good once. */
function nextCode({ secret }: Pick<Account, 'secret'>): string {
  clock.advance(STEP_MS);
  return totpCode(secret, clock.now());
}

async function signUp({ client, server }: Shop = shop): Promise<{ email: string; token: string }> {
  const email = buildEmail();
  expect((await server.post('/users', { email, password: PASSWORD, emailVerified: true })).status).toBe(201);
  return { email, token: tokenOf(await client.logIn(email)) };
}

async function enrol(at: Shop = shop): Promise<Account> {
  const { email, token } = await signUp(at);
  const begun = await at.client.post('/mfa/totp', undefined, bearer(token));
  expect(codeOf(begun)).toBe('200 ');
  const { secret } = dataOf<{ secret: string }>(begun);
  const code = totpCode(secret, clock.now());
  const confirmed = await at.client.post('/mfa/totp/confirm', { code }, bearer(token));
  expect(codeOf(confirmed)).toBe('200 ');
  return { email, token, secret, recovery: dataOf<{ recoveryCodes: string[] }>(confirmed).recoveryCodes };
}

async function challenge({ email }: { email: string }, at: Shop = shop): Promise<string> {
  const refused = await at.client.logIn(email);
  expect(codeOf(refused)).toBe('401 MFA_REQUIRED');
  return dataOf<{ mfaToken: string }>(refused).mfaToken;
}
const finish = (body: object, at: Shop = shop) => at.client.post('/login/mfa', body);

/** The documents of a collection, for a signed-in user. */
function documents({ publishable }: Shop, token: string, name = 'notes') {
  const send = (method: 'get' | 'post') =>
    request(test.server)[method](`/api/data/${name}`).set('x-api-key', publishable).set(bearer(token));
  return { get: () => send('get'), post: () => send('post').send({ text: 'mine' }) };
}

describe('enrolling an authenticator app', () => {
  it('answers secret, address and ten codes, and asks for a code from then on', async () => {
    const { email, token } = await signUp();
    const { secret, uri } = dataOf<{ secret: string; uri: string }>(
      await shop.client.post('/mfa/totp', {}, bearer(token)),
    );
    const name = encodeURIComponent(shop.project.name);
    expect(uri).toBe(
      `otpauth://totp/${name}:${encodeURIComponent(email)}?secret=${secret}&issuer=${name}&algorithm=SHA1&digits=6&period=30`,
    );
    expect(codeOf(await shop.client.logIn(email))).toBe('200 ');
    const wrong = await shop.client.post('/mfa/totp/confirm', { code: '12345' }, bearer(token));
    expect(codeOf(wrong)).toBe('400 MFA_CODE_INVALID');
    const body = { code: totpCode(secret, clock.now()) };
    const both = await Promise.all([1, 2].map(() => shop.client.post('/mfa/totp/confirm', body, bearer(token))));
    expect(both.filter(({ status }) => status === 200)).toHaveLength(1);
    const { recoveryCodes } = dataOf<{ recoveryCodes: string[] }>(both.find(({ status }) => status === 200)!);
    expect(new Set(recoveryCodes).size).toBe(10);
    for (const each of recoveryCodes) expect(each).toMatch(/^[a-z2-7]{5}-[a-z2-7]{5}$/);
    const refused = await shop.client.logIn(email);
    expect(refused.headers).not.toHaveProperty('set-cookie');
    expect(refused.headers).not.toHaveProperty('x-refresh-token');
    expect(refused.body).toMatchObject({
      code: 'MFA_REQUIRED',
      data: { methods: ['totp', 'recoveryCode'], expiresIn: '5m' },
    });
  });

  it('is for a proven address, a fresh proof and a project that wants it, and once', async () => {
    const off = await openShop({ mfa: 'off' });
    const stranger = await off.client.signUp();
    expect(codeOf(await off.client.post('/mfa/totp', {}, bearer(tokenOf(stranger))))).toBe('403 MFA_OFF');
    expect(codeOf(await off.client.post('/mfa/totp/confirm', { code: '1' }, bearer(tokenOf(stranger))))).toBe(
      '403 MFA_OFF',
    );
    const unproven = tokenOf(await shop.client.signUp());
    for (const [path, body] of [['/mfa/totp', {}] as const, ['/mfa/totp/confirm', { code: '1' }] as const]) {
      expect(codeOf(await shop.client.post(path, body, bearer(unproven)))).toBe('403 EMAIL_UNVERIFIED');
    }
    const account = await enrol();
    const { token } = account;
    const stale = await signUp();
    clock.advance(11 * 60_000);
    for (const path of ['/mfa/totp', '/mfa/recovery-codes']) {
      const guessed = { currentPassword: 'guessed' };
      expect(codeOf(await shop.client.post(path, {}, bearer(stale.token)))).toBe('403 STEP_UP_REQUIRED');
      expect(codeOf(await shop.client.post(path, guessed, bearer(stale.token)))).toBe('401 INVALID_CREDENTIALS');
      expect(codeOf(await shop.client.post(path, { otp: '1' }, bearer(stale.token)))).toBe('400 OTP_INVALID');
      expect(codeOf(await shop.client.post(path, { totp: '1' }, bearer(stale.token)))).toBe('401 MFA_CODE_INVALID');
    }
    for (const method of ['/mfa/totp', '/mfa/totp/confirm']) {
      const reply = await shop.client.post(method, { code: '123456' }, bearer(stale.token));
      expect(codeOf(reply)).toBe('403 STEP_UP_REQUIRED');
    }
    expect(codeOf(await shop.client.post('/mfa/totp', {}, bearer(token)))).toBe('403 STEP_UP_REQUIRED');
    const proven = await finish({ mfaToken: await challenge(account), totp: nextCode(account) });
    expect(codeOf(await shop.client.post('/mfa/totp', {}, bearer(tokenOf(proven))))).toBe('409 TOTP_ENROLLED');
  });
});

describe('a sign-in with a second factor', () => {
  it('is finished by a code, which is good once, and tells of both proofs', async () => {
    const account = await enrol();
    const mfaToken = await challenge(account);
    expect(codeOf(await finish({ mfaToken, totp: '000000' }))).toBe('401 MFA_CODE_INVALID');
    const totp = nextCode(account);
    const replies = await Promise.all(Array.from({ length: 4 }, () => finish({ mfaToken, totp })));
    const done = replies.filter(({ status }) => status === 200);
    expect(done).toHaveLength(1);
    expect(claimsOf(tokenOf(done[0]!))).toMatchObject({ amr: ['pwd', 'totp'] });
    expect(codeOf(await finish({ mfaToken, totp: nextCode(account) }))).toBe('401 MFA_TOKEN_INVALID');
    expect(codeOf(await finish({ mfaToken: await challenge(account), totp }))).toBe('401 MFA_CODE_INVALID');
  });

  it('takes the code of the half minute before and after, not two away', async () => {
    const account = await enrol();
    clock.advance(10 * STEP_MS);
    for (const [away, outcome] of [
      [-2, '401 MFA_CODE_INVALID'],
      [2, '401 MFA_CODE_INVALID'],
      [-1, '200 '],
      [1, '200 '],
      // Older than the last one that was taken.
      [0, '401 MFA_CODE_INVALID'],
    ] as const) {
      const totp = totpCode(account.secret, clock.now() + away * STEP_MS);
      expect([away, codeOf(await finish({ mfaToken: await challenge(account), totp }))]).toEqual([away, outcome]);
    }
  });

  it('is finished by each recovery code once, however it is written', async () => {
    const account = await enrol();
    const [first, second] = account.recovery as [string, string];
    const tokens = await Promise.all(Array.from({ length: 4 }, () => challenge(account)));
    const replies = await Promise.all(tokens.map((mfaToken) => finish({ mfaToken, recoveryCode: first })));
    expect(replies.map(codeOf).sort()).toEqual(['200 ', ...Array<string>(3).fill('401 MFA_CODE_INVALID')]);
    const upper = { mfaToken: await challenge(account), recoveryCode: ` ${second.toUpperCase().replace('-', ' ')} ` };
    const reply = await finish(upper);
    expect(claimsOf(tokenOf(reply))).toMatchObject({ amr: ['pwd', 'recovery'] });
    expect(dataOf(await shop.client.get('/mfa', bearer(tokenOf(reply))))).toMatchObject({ recoveryCodes: 8 });
  });

  it('is asked for by every way in, and dies with the sessions of the account', async () => {
    const account = await enrol();
    clock.advance(61_000);
    await shop.client.post('/login/code', { email: account.email });
    const otp = await readMailedCode(test, account.email);
    const byCode = await shop.client.post('/login/code/verify', { email: account.email, otp });
    expect(codeOf(byCode)).toBe('401 MFA_REQUIRED');
    const { mfaToken } = dataOf<{ mfaToken: string }>(byCode);
    expect((await shop.server.send('delete', `/users/${account.email}/sessions`)).status).toBe(200);
    expect(codeOf(await finish({ mfaToken, totp: nextCode(account) }))).toBe('401 MFA_TOKEN_INVALID');
    const late = await challenge(account);
    clock.advance(5 * 60_000 + 1);
    expect(codeOf(await finish({ mfaToken: late, totp: nextCode(account) }))).toBe('401 MFA_TOKEN_INVALID');
    expect(codeOf(await finish({ mfaToken: 'invented', totp: '1' }))).toBe('401 MFA_TOKEN_INVALID');
    const closed = await challenge(account);
    // That ends the sessions too.
    expect((await shop.server.post(`/users/${account.email}/disable`)).status).toBe(200);
    expect(codeOf(await finish({ mfaToken: closed, totp: nextCode(account) }))).toBe('401 MFA_TOKEN_INVALID');
  });

  it('has five guesses a network and twenty a day, however many tokens and requests', async () => {
    const account = await enrol();
    const tokens = await Promise.all(Array.from({ length: 12 }, () => challenge(account)));
    const replies = await Promise.all(tokens.map((mfaToken) => finish({ mfaToken, totp: '000000' })));
    expect(replies.map(codeOf).sort()).toEqual([
      ...Array<string>(5).fill('401 MFA_CODE_INVALID'),
      ...Array<string>(7).fill('423 ACCOUNT_LOCKED'),
    ]);
    expect(codeOf(await shop.client.logIn(account.email))).toBe('423 ACCOUNT_LOCKED');
    let compared = 5;
    for (let round = 0; round < 6; round++) {
      clock.advance(16 * 60_000);
      const mfaToken = await challenge(account);
      for (let guess = 0; guess < 4; guess++) {
        const reply = await finish({ mfaToken, recoveryCode: 'aaaaa-aaaaa' });
        if (codeOf(reply) === '401 MFA_CODE_INVALID') compared++;
      }
    }
    expect(compared).toBe(20);
    const right = { mfaToken: await challenge(account), totp: nextCode(account) };
    clock.advance(16 * 60_000);
    expect(codeOf(await finish({ ...right, mfaToken: await challenge(account) }))).toBe('423 ACCOUNT_LOCKED');
    clock.advance(24 * HOUR_MS);
    expect(codeOf(await finish({ mfaToken: await challenge(account), totp: nextCode(account) }))).toBe('200 ');
  });
});

describe('ending a session that is not the one at hand', () => {
  it('needs a fresh proof: one, the others or all; the own one needs none', async () => {
    const { client, server } = shop;
    const email = buildEmail();
    await server.post('/users', { email, password: PASSWORD, emailVerified: true });
    const signIn = async (): Promise<{ at: Record<string, string>; id: string }> => {
      const { body, headers } = await client.logIn(email);
      return {
        at: bearer((body as { accessToken: string }).accessToken),
        id: (headers['x-refresh-token'] as string).split('.')[0]!,
      };
    };
    const other = await signIn();
    const own = await signIn();
    clock.advance(11 * 60_000);
    const end = (which: string, proof?: object) => client.send('delete', `/sessions/${which}`, proof, own.at);
    for (const which of [other.id, 'others', 'all', 'f'.repeat(24)]) {
      expect([which, codeOf(await end(which))]).toEqual([which, '403 STEP_UP_REQUIRED']);
    }
    expect(codeOf(await end(other.id, { currentPassword: 'not the password' }))).toBe('401 INVALID_CREDENTIALS');
    expect(codeOf(await client.get('/sessions', other.at))).toBe('200 ');
    expect(codeOf(await end(other.id, { currentPassword: PASSWORD }))).toBe('200 ');
    expect(codeOf(await client.get('/sessions', other.at))).toBe('401 TOKEN_INVALID');
    expect(codeOf(await end(own.id))).toBe('200 ');
  });
});

describe('the level of an account with a second factor', () => {
  it('is what changes the ways in, whatever else is proven', async () => {
    const account = await enrol();
    const { client } = shop;
    const at = bearer(account.token);
    clock.advance(61_000);
    await client.post('/step-up/code', undefined, at);
    const otp = await readMailedCode(test, account.email);
    const weak = { currentPassword: PASSWORD };
    const refused = await client.post('/step-up', weak, at);
    expect(codeOf(refused)).toBe('403 STEP_UP_REQUIRED');
    expect(refused.body).toMatchObject({ details: [{ methods: ['totp', 'recoveryCode'] }] });
    expect(codeOf(await client.post('/step-up', { otp }, at))).toBe('403 STEP_UP_REQUIRED');
    const password = { currentPassword: PASSWORD, newPassword: 'staple correct' };
    const changed = await client.send('patch', '/update-profile', { email: buildEmail(), ...weak }, at);
    expect(codeOf(changed)).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await client.post('/change-password', password, at))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await client.send('put', '/change-password', password, at))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await client.send('delete', '/mfa/totp', weak, at))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await client.post('/mfa/recovery-codes', weak, at))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await client.send('delete', '/sessions/all', weak, at))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await client.send('delete', '/me', weak, at))).toBe('403 STEP_UP_REQUIRED');
    const wrong = { ...password, totp: '1' };
    expect(codeOf(await client.post('/change-password', wrong, at))).toBe('401 MFA_CODE_INVALID');
    expect(codeOf(await client.send('put', '/change-password', wrong, at))).toBe('401 MFA_CODE_INVALID');

    const stepped = await client.post('/step-up', { totp: nextCode(account) }, at);
    expect(claimsOf(tokenOf(stepped))).toMatchObject({ amr: ['pwd', 'totp'] });
    const renewed = dataOf<{ recoveryCodes: string[] }>(await client.post('/mfa/recovery-codes', {}, at));
    const old = { mfaToken: await challenge(account), recoveryCode: account.recovery[0] };
    expect(codeOf(await finish(old))).toBe('401 MFA_CODE_INVALID');
    expect(codeOf(await finish({ ...old, recoveryCode: renewed.recoveryCodes[0] }))).toBe('200 ');
    expect(codeOf(await client.post('/change-password', password, at))).toBe('200 ');
    expect(codeOf(await client.send('delete', '/mfa/totp', undefined, at))).toBe('200 ');
    expect(codeOf(await client.logIn(account.email, 'staple correct'))).toBe('200 ');
    clock.advance(11 * 60_000);
    const again = await client.send('delete', '/mfa/totp', { currentPassword: 'staple correct' }, at);
    expect(codeOf(again)).toBe('409 TOTP_NOT_ENROLLED');
    const codes = await client.post('/mfa/recovery-codes', { currentPassword: 'staple correct' }, at);
    expect(codeOf(codes)).toBe('409 TOTP_NOT_ENROLLED');
  });

  it('stays through a password reset by mail, which opens no session', async () => {
    const account = await enrol();
    clock.advance(61_000);
    await shop.client.post('/request-password-reset', { email: account.email });
    const otp = await readMailedCode(test, account.email);
    const reset = { email: account.email, otp, newPassword: 'another one' };
    expect(codeOf(await shop.client.post('/reset-password', reset))).toBe('200 ');
    expect(codeOf(await shop.client.logIn(account.email, 'another one'))).toBe('401 MFA_REQUIRED');
  });

  it('ends when another person proves the address of the account', async () => {
    const account = await enrol();
    const email = buildEmail();
    expect((await shop.server.send('patch', `/users/${account.email}`, { email })).status).toBe(200);
    await shop.client.post('/login/code', { email });
    const entered = await shop.client.post('/login/code/verify', { email, otp: await readMailedCode(test, email) });
    expect(codeOf(entered)).toBe('200 ');
    expect(dataOf(await shop.client.get('/mfa', bearer(tokenOf(entered))))).toEqual({
      totp: null,
      recoveryCodes: 0,
      resetAt: null,
    });
  });
});

describe('a reset of the factors by the project', () => {
  it('is told to the address, takes effect after a day, and ends the sessions', async () => {
    const account = await enrol();
    const mails = await countMails(test, account.email);
    const reply = await shop.server.send('delete', `/users/${account.email}/mfa`);
    const resetAt = new Date(clock.now() + 24 * HOUR_MS).toISOString();
    expect(dataOf(reply)).toMatchObject({ mfa: { resetAt } });
    expect((await shop.server.send('delete', `/users/${account.email}/mfa`)).status).toBe(200);
    expect(await countMails(test, account.email)).toBe(mails + 1);
    const [mail] = await listOutbox(test.app, { to: account.email, limit: 1 });
    expect(mail!.text).toContain(resetAt);
    clock.advance(23 * HOUR_MS);
    await drainJobs(test.app);
    await challenge(account);
    const last = await shop.client.get('/mfa', bearer(account.token));
    expect(codeOf(last)).toBe('401 TOKEN_EXPIRED');
    clock.advance(HOUR_MS);
    // Whether or not a worker has come to it.
    const signedIn = await shop.client.logIn(account.email);
    expect(codeOf(signedIn)).toBe('200 ');
    await drainJobs(test.app);
    expect(codeOf(await shop.client.me(tokenOf(signedIn)))).toBe('200 ');
    expect(codeOf(await shop.server.send('delete', `/users/${account.email}/mfa`))).toBe('409 TOTP_NOT_ENROLLED');
  });

  it('ends sessions by its job alone, and takes effect at once where the project says 0s', async () => {
    const quick = await openShop({ mfa: 'optional', mfaResetDelay: '0s' });
    const account = await enrol(quick);
    expect((await quick.server.send('delete', `/users/${account.email}/mfa`)).status).toBe(200);
    expect(codeOf(await quick.client.me(account.token))).toBe('401 TOKEN_INVALID');
    expect(codeOf(await quick.client.logIn(account.email))).toBe('200 ');
  });

  it('is stopped by whoever signs in with the factor', async () => {
    const account = await enrol();
    await shop.server.send('delete', `/users/${account.email}/mfa`);
    expect(codeOf(await finish({ mfaToken: await challenge(account), totp: nextCode(account) }))).toBe('200 ');
    clock.advance(25 * HOUR_MS);
    await drainJobs(test.app);
    await challenge(account);
  });
});

describe('a project that wants second factors', () => {
  it('lets a session without one do nothing but enrol', async () => {
    const strict = await openShop({ mfa: 'required' });
    await buildCollection(test.app, strict.project, {
      name: 'notes',
      fields: [{ name: 'text', type: 'String', required: true }],
      rls: { mode: 'private', ownerField: 'userId' },
    });
    const data = openUserClient(test, strict.publishable);
    const account = await signUp(strict);
    const at = bearer(account.token);
    for (const reply of [
      await data.get('/sessions', at),
      await data.send('patch', '/update-profile', { name: 'Ann' }, at),
      await documents(strict, account.token).get(),
      await documents(strict, account.token).post(),
    ]) {
      expect(codeOf(reply)).toBe('403 MFA_ENROLMENT_REQUIRED');
    }
    expect(codeOf(await data.me(account.token))).toBe('200 ');
    const { secret } = dataOf<{ secret: string }>(await data.post('/mfa/totp', {}, at));
    const code = totpCode(secret, clock.now());
    expect(codeOf(await data.post('/mfa/totp/confirm', { code }, at))).toBe('200 ');
    const mfaToken = await challenge(account, strict);
    const entered = await finish({ mfaToken, totp: nextCode({ secret }) }, strict);
    const full = tokenOf(entered);
    expect(codeOf(await data.get('/sessions', bearer(full)))).toBe('200 ');
    expect(codeOf(await documents(strict, full).post())).toBe('201 ');
  });

  it('has user.mfa in rules, which is true in a session with a second factor', async () => {
    await buildCollection(test.app, shop.project, {
      name: 'secrets',
      fields: [{ name: 'text', type: 'String', required: true }],
      rules: { read: 'user.mfa = true', create: 'user.mfa = true', update: 'nobody', delete: 'nobody' },
    });
    const account = await enrol();
    const write = (token: string) => documents(shop, token, 'secrets').post();
    expect(codeOf(await write(account.token))).toBe('403 RULE_REFUSED');
    const mfaToken = await challenge(account);
    expect(codeOf(await write(tokenOf(await finish({ mfaToken, totp: nextCode(account) }))))).toBe('201 ');
  });
});

it('opens after the master key was rotated and the old one is gone', async () => {
  const account = await enrol();
  await rotateSecrets(test.app);
  const totp = nextCode(account);
  expect(codeOf(await finish({ mfaToken: await challenge(account), totp }))).toBe('200 ');
  const recoveryCode = account.recovery[3];
  expect(codeOf(await finish({ mfaToken: await challenge(account), recoveryCode }))).toBe('200 ');
});
