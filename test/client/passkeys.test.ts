import { createServer } from 'node:http';
import type { CDPSession, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { createClient } from '../world/client.js';
import { changeProject } from '../world/projects.js';
import { totpCode } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { CHROMIUM, useChromium } from '../helpers/chromium.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { listen } from '../helpers/listen.js';
import { use, useTestApp } from '../helpers/use.js';

const clock = createFakeClock(Date.now());
const PASSWORD = 'correct horse battery';

const page = (): string => `<!doctype html><title>app</title><script type="module">
import { createClient } from '${test.url}/api/client.js';
globalThis.api = createClient({ url: '${test.url}', key: '${shop.publishable}' });
</script>`;

const test = await useTestApp({ clock, settings: { BSVC_BCRYPT_COST: '4' } });
const shop = await buildProject(test.app);
const site = use(
  await listen(createServer((_, response) => response.setHeader('content-type', 'text/html').end(page()))),
);
const origin = site.url.replace('127.0.0.1', 'localhost').replace(/\/$/, '');
await changeProject(test.app, shop.project, {
  signIn: { passkeys: { rpId: 'localhost', origins: [origin] }, mfa: 'optional' },
});
const browser = await useChromium();

let made = 0;
const server = () => createClient({ url: test.url, key: shop.secret });

interface Device {
  page: Page;
  cdp: CDPSession;
  authenticator: string;
}

/** A page of the application on a device with an authenticator that verifies its user. */
async function openDevice(at = origin): Promise<Device> {
  const context = await browser.newContext();
  const opened = await context.newPage();
  const cdp = await context.newCDPSession(opened);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId: authenticator } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await opened.goto(at);
  await opened.waitForFunction('globalThis.api');
  return { page: opened, cdp, authenticator };
}

/** A user with a proven address, signed in on a device. */
async function signIn(device: Device): Promise<string> {
  const email = `passkey${++made}@example.test`;
  const headers = { 'x-api-key': shop.secret, 'content-type': 'application/json' };
  const body = JSON.stringify({ email, password: PASSWORD, emailVerified: true });
  expect((await fetch(`${test.url}/api/userAuth/users`, { method: 'POST', headers, body })).status).toBe(201);
  await run(device, `api.auth.signIn({ email: '${email}', password: '${PASSWORD}' })`);
  return email;
}

/** What an expression of the page comes to; of an error its code. */
const run = <T>({ page: of }: Device, expression: string): Promise<T> =>
  of.evaluate(`(async () => ${expression})().catch((error) => error.code ?? String(error))`) as Promise<T>;

const claims = async (device: Device): Promise<{ amr: string[] }> => {
  const token = await run<string>(device, 'api.auth.token()');
  return JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { amr: string[] };
};
const post = async (path: string, body: object, token?: string): Promise<string> => {
  const headers = {
    'x-api-key': shop.publishable,
    'content-type': 'application/json',
    ...(token && { authorization: `Bearer ${token}` }),
  };
  const reply = await fetch(`${test.url}/api/userAuth/${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  const { code = '' } = (await reply.json()) as { code?: string };
  return `${reply.status} ${code}`;
};

describe.skipIf(!CHROMIUM)('passkeys in a browser', () => {
  it('are registered, named and sign in, as level 2', async () => {
    const device = await openDevice();
    const email = await signIn(device);
    expect(await run(device, "api.auth.passkeys.register('Laptop')")).toMatchObject({ name: 'Laptop', usedAt: null });
    await run(device, 'api.auth.signOut()');
    expect(await run(device, 'api.auth.passkeys.signIn()')).toMatchObject({ email });
    expect(await claims(device)).toMatchObject({ amr: ['passkey'] });
    const [passkey] = await run<{ id: string; usedAt: string }[]>(device, 'api.auth.passkeys.list()');
    expect(passkey!.usedAt).not.toBeNull();
    expect(await run(device, `api.auth.passkeys.rename('${passkey!.id}', 'Work')`)).toMatchObject({ name: 'Work' });
    expect(await run(device, "api.auth.passkeys.rename('nonesuch', 'Work')")).toBe('PASSKEY_NOT_FOUND');
    expect(await run(device, 'api.auth.passkeys.register()')).toBe('PASSKEY_NOT_ANSWERED');
  });

  it('answer a challenge once, however many send the answer, and only where it was asked', async () => {
    const device = await openDevice();
    await signIn(device);
    await run(device, 'api.auth.passkeys.register()');
    const response = await run<object>(device, 'api.auth.passkeys.challenge()');
    const replies = await Promise.all(Array.from({ length: 4 }, () => post('login/passkey', { response })));
    expect(replies.sort()).toEqual(['200 ', ...Array<string>(3).fill('401 PASSKEY_INVALID')]);
    const late = await run<object>(device, 'api.auth.passkeys.challenge()');
    clock.advance(5 * 60_000 + 1);
    expect(await post('login/passkey', { response: late })).toBe('401 PASSKEY_INVALID');
    const invented = { id: 'AA', rawId: 'AA', type: 'public-key', response: {} };
    expect(await post('login/passkey', { response: invented })).toBe('401 PASSKEY_INVALID');
    // A page of another port is another origin.
    const other = await listen(createServer((_, reply) => reply.setHeader('content-type', 'text/html').end(page())));
    await device.page.goto(other.url.replace('127.0.0.1', 'localhost'));
    await device.page.waitForFunction('globalThis.api');
    expect(await run(device, 'api.auth.passkeys.signIn()')).toBe('PASSKEY_INVALID');
    await other.close();
  });

  it('are wanted with the user verified', async () => {
    const device = await openDevice();
    await signIn(device);
    await run(device, 'api.auth.passkeys.register()');
    const { cdp, authenticator: authenticatorId } = device;
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    expect(await run(device, 'api.auth.passkeys.signIn()')).toBe('PASSKEY_NOT_ANSWERED');
  });

  it('raise the level: the password alone no longer changes the ways in', async () => {
    const device = await openDevice();
    const email = await signIn(device);
    await run(device, 'api.auth.passkeys.register()');
    const credentials = `{ email: '${email}', password: '${PASSWORD}' }`;
    expect(await run(device, `api.auth.signIn(${credentials})`)).toMatchObject({ email });
    expect(await run(device, `api.auth.deleteAccount({ currentPassword: '${PASSWORD}' })`)).toBe('STEP_UP_REQUIRED');
    const change = `api.auth.changePassword({ currentPassword: '${PASSWORD}', newPassword: 'staple correct' })`;
    expect(await run(device, change)).toBe('STEP_UP_REQUIRED');
    const passkey = await run<object>(device, 'api.auth.passkeys.challenge()');
    await run(device, `api.auth.stepUp({ passkey: ${JSON.stringify(passkey)} })`);
    expect(await claims(device)).toMatchObject({ amr: ['pwd', 'passkey'] });
    expect(await run(device, `api.auth.stepUp({ passkey: ${JSON.stringify(passkey)} })`)).toBe('PASSKEY_INVALID');
    await run(device, change);
    const [{ id }] = (await run<[{ id: string }]>(device, 'api.auth.passkeys.list()'))!;
    await run(device, `api.auth.passkeys.remove('${id}')`);
    expect(await run(device, 'api.auth.passkeys.list()')).toEqual([]);
    expect(await run(device, 'api.auth.passkeys.signIn()')).toBe('PASSKEY_INVALID');
  });

  it('finish a sign-in that wants a second factor, of their own user alone', async () => {
    const [device, stranger] = [await openDevice(), await openDevice()];
    const email = await signIn(device);
    await signIn(stranger);
    for (const each of [device, stranger]) await run(each, 'api.auth.passkeys.register()');
    const { secret } = await run<{ secret: string }>(device, 'api.auth.mfa.beginTotp()');
    expect(await run(device, 'api.auth.mfa.beginTotp()')).toBe('STEP_UP_REQUIRED');
    const stepUp = (of: Device) => run<object>(of, 'api.auth.passkeys.challenge()');
    await run(device, `api.auth.stepUp({ passkey: ${JSON.stringify(await stepUp(device))} })`);
    const begun = await run<{ secret: string }>(device, 'api.auth.mfa.beginTotp()');
    expect(secret).toBeUndefined();
    await run(device, `api.auth.mfa.confirmTotp('${totpCode(begun.secret, clock.now())}')`);
    const refused = await device.page.evaluate<{ data: { mfaToken: string; methods: string[] } }>(
      `api.auth.signIn({ email: '${email}', password: '${PASSWORD}' }).catch(({ data }) => ({ data }))`,
    );
    expect(refused.data.methods).toEqual(['totp', 'recoveryCode', 'passkey']);
    const { mfaToken } = refused.data;
    const foreign = { mfaToken, passkey: await stepUp(stranger) };
    expect(await post('login/mfa', foreign)).toBe('401 PASSKEY_INVALID');
    expect(await post('login/mfa', { mfaToken, passkey: await stepUp(device) })).toBe('200 ');
  });

  it('end with the reset of the factors and with a new owner of the address', async () => {
    const device = await openDevice();
    const email = await signIn(device);
    await run(device, 'api.auth.passkeys.register()');
    await changeProject(test.app, shop.project, { signIn: { mfaResetDelay: '0s' } });
    const headers = { 'x-api-key': shop.secret };
    const at = `${test.url}/api/userAuth/users/${email}/mfa`;
    expect((await fetch(at, { method: 'DELETE', headers })).status).toBe(200);
    expect(await run(device, 'api.auth.passkeys.signIn()')).toBe('PASSKEY_INVALID');
    expect(server().auth.user).toBeNull();
  });

  it('keep somebody from taking off the last way in', async () => {
    const device = await openDevice();
    const headers = { 'x-api-key': shop.secret, 'content-type': 'application/json' };
    const email = `passkey${++made}@example.test`;
    const body = JSON.stringify({ email, emailVerified: true });
    await fetch(`${test.url}/api/userAuth/users`, { method: 'POST', headers, body });
    await changeProject(test.app, shop.project, { signIn: { codeLogin: 'existing' } });
    await run(device, `api.auth.code.send('${email}')`);
    const { readMailedCode } = await import('../helpers/user-client.js');
    await run(device, `api.auth.code.signIn({ email: '${email}', otp: '${await readMailedCode(test, email)}' })`);
    const { id } = await run<{ id: string }>(device, 'api.auth.passkeys.register()');
    const challenge = await run<object>(device, 'api.auth.passkeys.challenge()');
    const removed = `api.auth.passkeys.remove('${id}', { passkey: ${JSON.stringify(challenge)} })`;
    expect(await run(device, removed)).toBe('LAST_SIGN_IN_METHOD');
  });
});
