import type { Response } from 'supertest';
import { describe, expect, it } from 'vitest';
import { type SignInSettings, changeProject } from '../world/projects.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { openAuthenticator, type Distortion, type SoftAuthenticator } from '../helpers/soft-authenticator.js';
import { useTestApp } from '../helpers/use.js';
import {
  bearer,
  buildEmail,
  openUserClient,
  PASSWORD,
  readMailedCode,
  type UserClient,
} from '../helpers/user-client.js';

const clock = createFakeClock();
const [RP, ORIGIN] = ['shop.example', 'https://app.shop.example'];
const SITE: SignInSettings = { passkeys: { rpId: RP, origins: [ORIGIN] }, mfa: 'optional', codeLogin: 'existing' };

interface Shop extends TestProject {
  client: UserClient;
  server: UserClient;
}
interface Account {
  email: string;
  token: string;
  device: SoftAuthenticator;
  id: string;
}

async function openShop(signIn: SignInSettings): Promise<Shop> {
  const made = await buildProject(test.app);
  const project = await changeProject(test.app, made.project, { signIn });
  return {
    ...made,
    project,
    client: openUserClient(test, made.publishable),
    server: openUserClient(test, made.secret),
  };
}

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const shop = await openShop(SITE);

const codeOf = (reply: Response): string => `${reply.status} ${(reply.body as { code?: string }).code ?? ''}`;
const tokenOf = (reply: Response): string => (reply.body as { accessToken: string }).accessToken;
const dataOf = <T>(reply: Response): T => (reply.body as { data: T }).data;

async function signUp({ client, server } = shop): Promise<{ email: string; token: string }> {
  const email = buildEmail();
  await server.post('/users', { email, password: PASSWORD, emailVerified: true });
  return { email, token: tokenOf(await client.logIn(email)) };
}

async function begin(token: string, body: object = {}): Promise<{ challenge: string }> {
  return (await shop.client.post('/passkeys/options', body, bearer(token))).body as { challenge: string };
}
const register = (token: string, response: object) => shop.client.post('/passkeys', { response }, bearer(token));

async function enrol(): Promise<Account> {
  const { email, token } = await signUp();
  const device = openAuthenticator(RP, ORIGIN);
  const made = await register(token, device.create(await begin(token)));
  expect(codeOf(made)).toBe('201 ');
  return { email, token, device, id: dataOf<{ id: string }>(made).id };
}

const challenge = async ({ client } = shop): Promise<{ challenge: string }> =>
  (await client.post('/login/passkey/options')).body as { challenge: string };
async function answer(device: SoftAuthenticator, distortion?: Distortion): Promise<Response> {
  return shop.client.post('/login/passkey', { response: device.get(await challenge(), distortion) });
}

describe('a reset by the project', () => {
  it('takes passkeys off after its delay, shows that it is coming, and is stopped by one', async () => {
    const { email, device } = await enrol();
    const resetAt = async (method: 'delete' | 'get', path: string): Promise<unknown> => {
      const reply = await shop.server.send(method, `/users/${email}${path}`);
      expect(codeOf(reply)).toBe('200 ');
      return dataOf<{ mfa?: { since: null; resetAt: string } }>(reply).mfa;
    };
    const coming = { since: null, resetAt: new Date(clock.now() + 24 * 3_600_000).toISOString() };
    expect(await resetAt('delete', '/mfa')).toEqual(coming);
    expect(await resetAt('get', '')).toEqual(coming);
    expect(codeOf(await answer(device))).toBe('200 ');
    expect(await resetAt('get', '')).toBeUndefined();
    await resetAt('delete', '/mfa');
    clock.advance(25 * 3_600_000);
    expect(codeOf(await answer(device))).toBe('401 PASSKEY_INVALID');
    expect(await resetAt('get', '')).toBeUndefined();
  });
});

/** Of a page inside of a page of another origin, as browsers of different age say it. */
const FRAMED: [string, Distortion][] = [
  ['a frame of another origin', { frame: { crossOrigin: true } }],
  ['a frame in a named page', { frame: { crossOrigin: true, topOrigin: 'https://evil.example' } }],
  ['a named page alone', { frame: { topOrigin: 'https://evil.example' } }],
];

describe('registering a passkey', () => {
  it('takes the answer to its own challenge once, for the user who asked', async () => {
    const [{ token }, other] = [await signUp(), await signUp()];
    const device = openAuthenticator(RP, ORIGIN);
    const response = device.create(await begin(token));
    expect(codeOf(await register(other.token, response))).toBe('400 PASSKEY_INVALID');
    expect(codeOf(await register(token, response))).toBe('400 PASSKEY_INVALID');
    const again = device.create(await begin(token));
    const replies = await Promise.all(Array.from({ length: 4 }, () => register(token, again)));
    expect(replies.map(codeOf).sort()).toEqual(['201 ', ...Array<string>(3).fill('400 PASSKEY_INVALID')]);
    expect(codeOf(await register(token, openAuthenticator(RP, ORIGIN).get(await begin(token))))).toBe(
      '400 PASSKEY_INVALID',
    );
  });

  it.each<[string, Distortion]>([
    ['another origin', { origin: 'https://evil.example' }],
    ['another site', { rpId: 'evil.example' }],
    ['no verified user', { isVerified: false }],
    ...FRAMED,
    // Whose certificates could have the service call any address.
    ['certificates', { format: 'packed', statement: new Map([['x5c', Buffer.from('x')]]) }],
    ['an attestation of Android', { format: 'android-safetynet' }],
  ])('refuses an answer with %s', async (_what, distortion) => {
    const { token } = await signUp();
    const response = openAuthenticator(RP, ORIGIN).create(await begin(token), distortion);
    expect(codeOf(await register(token, response))).toBe('400 PASSKEY_INVALID');
    expect(dataOf(await shop.client.get('/passkeys', bearer(token)))).toMatchObject({ items: [] });
  });

  it('refuses what no browser answers, without a word of its own', async () => {
    const { token } = await signUp();
    for (const part of [{}, { attestationObject: 'AA' }, { attestationObject: [], clientDataJSON: {} }]) {
      const response = { id: 'AA', rawId: 'AA', type: 'public-key', response: part };
      expect(codeOf(await register(token, response))).toBe('400 PASSKEY_INVALID');
      expect(codeOf(await shop.client.post('/login/passkey', { response }))).toBe('401 PASSKEY_INVALID');
    }
    for (const response of [undefined, 5, {}, { id: '', rawId: '', type: 'public-key', response: {} }]) {
      expect(codeOf(await register(token, response as object))).toBe('400 VALIDATION_FAILED');
    }
  });

  it('is for a proven address, a fresh proof and a project that has passkeys', async () => {
    const off = await openShop({ mfa: 'optional' });
    const { token } = await signUp(off);
    const response = openAuthenticator(RP, ORIGIN).get({ challenge: 'AA' });
    for (const reply of [
      await off.client.post('/passkeys/options', {}, bearer(token)),
      await off.client.post('/passkeys', { response }, bearer(token)),
      await off.client.post('/login/passkey/options'),
      await off.client.post('/login/passkey', { response }),
    ]) {
      expect(codeOf(reply)).toBe('403 PASSKEYS_OFF');
    }
    const unproven = bearer(tokenOf(await shop.client.signUp()));
    expect(codeOf(await shop.client.post('/passkeys/options', {}, unproven))).toBe('403 EMAIL_UNVERIFIED');
    const stale = await signUp();
    clock.advance(11 * 60_000);
    const late = await shop.client.post('/passkeys/options', {}, bearer(stale.token));
    expect(codeOf(late)).toBe('403 STEP_UP_REQUIRED');
  });

  it('has at most twenty of an account, and no key twice', async () => {
    const { token, device } = await enrol();
    const known = await register(token, device.create(await begin(token, { passkey: device.get(await challenge()) })));
    expect(codeOf(known)).toBe('409 PASSKEY_KNOWN');
    const step = await shop.client.post('/step-up', { passkey: device.get(await challenge()) }, bearer(token));
    expect(codeOf(step)).toBe('200 ');
    const options = await Promise.all(Array.from({ length: 20 }, () => begin(token)));
    const replies: string[] = [];
    for (const each of options) {
      replies.push(codeOf(await register(token, openAuthenticator(RP, ORIGIN).create(each))));
    }
    expect(replies).toEqual([...Array<string>(19).fill('201 '), '409 TOO_MANY_PASSKEYS']);
    expect(codeOf(await shop.client.post('/passkeys/options', {}, bearer(token)))).toBe('409 TOO_MANY_PASSKEYS');
  });
});

describe('signing in with a passkey', () => {
  it('refuses whatever is not right about an answer, and uses its challenge up', async () => {
    const { device, token } = await enrol();
    const distortions: Distortion[] = [
      { origin: 'https://evil.example' },
      { rpId: 'evil.example' },
      { isVerified: false },
      ...FRAMED.map(([, framed]) => framed),
    ];
    for (const distortion of distortions) expect(codeOf(await answer(device, distortion))).toBe('401 PASSKEY_INVALID');
    expect(codeOf(await answer(openAuthenticator(RP, ORIGIN)))).toBe('401 PASSKEY_INVALID');
    // Another key under the same id.
    const forged = { ...openAuthenticator(RP, ORIGIN).get(await challenge()), id: device.id, rawId: device.id };
    expect(codeOf(await shop.client.post('/login/passkey', { response: forged }))).toBe('401 PASSKEY_INVALID');
    const foreign = await openShop(SITE);
    const elsewhere = { response: device.get(await challenge(foreign)) };
    expect(codeOf(await foreign.client.post('/login/passkey', elsewhere))).toBe('401 PASSKEY_INVALID');
    expect(codeOf(await shop.client.post('/login/passkey', elsewhere))).toBe('401 PASSKEY_INVALID');
    const registration = device.get(await begin(token, { passkey: device.get(await challenge()) }));
    expect(codeOf(await shop.client.post('/login/passkey', { response: registration }))).toBe('401 PASSKEY_INVALID');
    expect(codeOf(await answer(device))).toBe('200 ');
  });

  it('takes no counter twice', async () => {
    const { device } = await enrol();
    expect(codeOf(await answer(device, { counter: 7 }))).toBe('200 ');
    expect(codeOf(await answer(device, { counter: 7 }))).toBe('401 PASSKEY_INVALID');
    expect(codeOf(await answer(device, { counter: 8 }))).toBe('200 ');
  });

  it('is refused to a disabled account, and ends when its owner changes', async () => {
    const { device, email } = await enrol();
    await shop.server.post(`/users/${email}/disable`);
    expect(codeOf(await answer(device))).toBe('403 ACCOUNT_DISABLED');
    await shop.server.post(`/users/${email}/enable`);
    const moved = buildEmail();
    await shop.server.send('patch', `/users/${email}`, { email: moved });
    await shop.client.post('/login/code', { email: moved });
    const otp = await readMailedCode(test, moved);
    expect(codeOf(await shop.client.post('/login/code/verify', { email: moved, otp }))).toBe('200 ');
    expect(codeOf(await answer(device))).toBe('401 PASSKEY_INVALID');
  });

  it.each([
    { by: 'its user in the session', inSession: true, then: '200 ' },
    { by: 'somebody in no session', inSession: false, then: '401 PASSKEY_INVALID' },
  ])('after a change of address that $by has confirmed', async ({ inSession, then }) => {
    const { device, email, token } = await enrol();
    await shop.client.post('/step-up', { passkey: device.get(await challenge()) }, bearer(token));
    const moved = buildEmail();
    const asked = { email: moved, currentPassword: PASSWORD };
    expect(codeOf(await shop.client.send('patch', '/update-profile', asked, bearer(token)))).toBe('200 ');
    const otp = await readMailedCode(test, moved);
    const confirm = { email: moved, otp };
    expect(codeOf(await shop.client.post('/verify-email', confirm, inSession ? bearer(token) : {}))).toBe('200 ');
    const entered = await answer(device);
    expect(codeOf(entered)).toBe(then);
    if (inSession) expect((entered.body as { user: { email: string } }).user.email).toBe(moved);
    expect(codeOf(await shop.client.logIn(email))).toBe('401 INVALID_CREDENTIALS');
  });
});

describe('removing a passkey', () => {
  it('never takes the last way in off, however many requests try', async () => {
    const email = buildEmail();
    await shop.server.post('/users', { email, emailVerified: true });
    await shop.client.post('/login/code', { email });
    const otp = await readMailedCode(test, email);
    const token = tokenOf(await shop.client.post('/login/code/verify', { email, otp }));
    const devices = [openAuthenticator(RP, ORIGIN), openAuthenticator(RP, ORIGIN)];
    const options = [await begin(token), await begin(token)];
    const ids: string[] = [];
    for (const [at, device] of devices.entries()) {
      ids.push(dataOf<{ id: string }>(await register(token, device.create(options[at]!))).id);
    }
    await shop.client.post('/step-up', { passkey: devices[0]!.get(await challenge()) }, bearer(token));
    const remove = (id: string) => shop.client.send('delete', `/passkeys/${id}`, undefined, bearer(token));
    const both = await Promise.all(ids.map(remove));
    expect(both.map(codeOf).sort()).toEqual(['200 ', '409 LAST_SIGN_IN_METHOD']);
    const replies = await Promise.all(devices.map((device) => answer(device)));
    expect(replies.map(codeOf).sort()).toEqual(['200 ', '401 PASSKEY_INVALID']);
    expect(codeOf(await remove('nonesuch'))).toBe('404 PASSKEY_NOT_FOUND');
    const rename = await shop.client.send('patch', '/passkeys/nonesuch', { name: 'x' }, bearer(token));
    expect(codeOf(rename)).toBe('404 PASSKEY_NOT_FOUND');
  });
});

/** Routes that take a proof in the body. */
const PROVING = [
  ['post', '/step-up'],
  ['delete', '/me'],
  ['delete', '/sessions/all'],
  ['delete', '/identities/acme'],
  ['post', '/social/acme/link'],
  ['post', '/mfa/totp'],
  ['delete', '/mfa/totp'],
  ['post', '/mfa/recovery-codes'],
  ['post', '/passkeys/options'],
  ['delete', '/passkeys/nonesuch'],
] as const;

describe.each(PROVING)('%s %s', (method, path) => {
  it('refuses every wrong proof by its own name, and locks guesses out', async () => {
    const off = await openShop({ mfa: 'optional' });
    const { token } = await signUp();
    const elsewhere = await signUp(off);
    clock.advance(11 * 60_000);
    const send = (body: object, at = shop, as = token) => at.client.send(method, path, body, bearer(as));
    const passkey = openAuthenticator(RP, ORIGIN).get(await challenge());
    expect(codeOf(await send({}))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await send({ passkey }))).toBe('401 PASSKEY_INVALID');
    expect(codeOf(await send({ passkey }, off, elsewhere.token))).toBe('403 PASSKEYS_OFF');
    expect(codeOf(await send({ otp: '000000' }))).toBe('400 OTP_INVALID');
    expect(codeOf(await send({ currentPassword: 'guessed' }))).toBe('401 INVALID_CREDENTIALS');
    for (let guess = 0; guess < 4; guess++) expect(codeOf(await send({ totp: '1' }))).toBe('401 MFA_CODE_INVALID');
    expect(codeOf(await send({ totp: '1' }))).toBe('423 ACCOUNT_LOCKED');
    expect(codeOf(await send({ currentPassword: PASSWORD }))).toBe('423 ACCOUNT_LOCKED');
  });
});
