import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Response } from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { addHook, type NewHook } from '../world/hooks.js';
import { changeCollection } from '../world/collections.js';
import { changeProject } from '../world/projects.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use, useTestApp } from '../helpers/use.js';
import {
  buildEmail,
  countMails,
  openUserClient,
  PASSWORD,
  readMailedCode,
  type UserClient,
} from '../helpers/user-client.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';

let owner: TestProject;
let client: UserClient;

const clock = createFakeClock();
const folder = use(await openTempDir());
const settings = {
  ...{ BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_RATE_LIMIT: 'off', BSVC_AUTH_RATE_LIMIT: 'off' },
  ...{ BSVC_BCRYPT_COST: '4', BSVC_HOOKS_DIR: folder.path, BSVC_ANONYMOUS_RATE_LIMIT: 'off' },
};
const test = await useTestApp({ settings, clock });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  owner = await buildProject(test.app);
  await changeProject(test.app, owner.project, { signIn: { anonymous: true, codeLogin: 'signup' } });
  await changeCollection(test.app, owner.project._id, 'users', ({ fields }) => ({
    fields: [
      ...fields,
      { name: 'tier', type: 'String', required: false, unique: false, hook: true, protected: true },
      { name: 'phone', type: 'String', required: false, unique: false },
    ],
  }));
  client = openUserClient(test, owner.publishable);
  receiver.received = [];
});

type Told = Record<string, unknown>;
const answering = (answer: (told: Told) => object): void =>
  void (receiver.answer = (response, { event }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer(event))));
const told = (): Told[] => receiver.received.map(({ event }) => event);
const codeOf = (reply: Response): string => `${reply.status} ${(reply.body as { code?: string }).code ?? ''}`.trim();

/** The same code behind an address, and in a file of the project. */
const WAYS: [
  way: string,
  add: (event: string, code: (told: Told) => object, more?: Partial<NewHook>) => Promise<void>,
][] = [
  [
    'an address',
    async (event, code, more) => {
      answering(code);
      await addHook(test.app, owner.project, { event, url: receiver.url, ...more });
    },
  ],
  [
    'a file',
    async (event, code, more) => {
      const dir = join(folder.path, owner.project.name);
      await mkdir(dir, { recursive: true });
      await writeFile(join(dir, 'users.mjs'), `export default { '${event}': ${code.toString()} };\n`);
      await addHook(test.app, owner.project, { event, run: 'users.mjs', ...more });
    },
  ],
];

describe.each(WAYS)('%s that is asked', (_way, add) => {
  it('about a sign-up sets fields of the account, or refuses it', async () => {
    await add('users.signup', ({ document }) =>
      (document as { email: string }).email.startsWith('bad')
        ? { allow: false, status: 403, code: 'NOT_INVITED', message: 'Ask for an invitation' }
        : { allow: true, set: { tier: 'trial' } },
    );
    const made = await client.signUp({ phone: '1' });
    expect(made.body).toMatchObject({ user: { tier: 'trial', phone: '1' } });
    const email = buildEmail('bad');
    expect(codeOf(await client.post('/signup', { email, password: PASSWORD }))).toBe('403 NOT_INVITED');
    expect(codeOf(await client.logIn(email))).toBe('401 INVALID_CREDENTIALS');
    expect(await countMails(test, email)).toBe(0);
  });

  it('about a sign-in refuses it without a session, and by every way in', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    await add('users.login', () => ({ allow: false, status: 403, code: 'CLOSED', message: 'Come back tomorrow' }));
    expect(codeOf(await client.logIn(email))).toBe('403 CLOSED');
    expect(codeOf(await client.logIn(email, 'wrong password'))).toBe('401 INVALID_CREDENTIALS');
    await client.post('/login/code', { email });
    const otp = await readMailedCode(test, email);
    expect(codeOf(await client.post('/login/code/verify', { email, otp }))).toBe('403 CLOSED');
  });

  it('to deliver a code does so, and nothing is mailed', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const before = await countMails(test, email);
    await add('users.deliver', ({ document }) => ({
      delivered: (document as { template: string }).template === 'login-code',
    }));
    await client.post('/login/code', { email });
    expect(await countMails(test, email)).toBe(before);
    await client.post('/request-password-reset', { email });
    expect(await countMails(test, email)).toBe(before + 1);
  });
});

describe('own code that is asked about an account', () => {
  const hook = (event: string, more: Partial<NewHook> = {}) =>
    addHook(test.app, owner.project, { event, url: receiver.url, timeoutMs: 10_000, ...more });

  it('is told who and how, and never a password', async () => {
    answering(() => ({ allow: true }));
    await hook('users.signup');
    await hook('users.login');
    const email = buildEmail();
    await client.signUp({ email, phone: '1' });
    await client.logIn(email);
    await client.post('/signup/anonymous', {});
    const [signup, login, guest] = told();
    expect(signup).toMatchObject({
      event: 'users.signup',
      caller: { userId: null, ip: '127.0.0.1' },
      document: { email },
    });
    const { _id } = signup!.document as { _id: string };
    expect(login).toMatchObject({
      event: 'users.login',
      caller: { userId: _id },
      document: { _id, method: 'pwd' },
    });
    expect(guest).toMatchObject({ event: 'users.signup', document: { isAnonymous: true } });
    // A sign-up signs in too, and is asked about once.
    expect(told()).toHaveLength(3);
    expect(JSON.stringify(told())).not.toMatch(/passw[^o]|correct horse|passwordHash/);
  });

  it('is asked about accounts that a code or the secret key makes', async () => {
    answering(() => ({ allow: true, set: { tier: 'trial' } }));
    await hook('users.signup');
    const email = buildEmail();
    await client.post('/login/code', { email });
    const otp = await readMailedCode(test, email);
    const signedIn = await client.post('/login/code/verify', { email, otp }).expect(200);
    expect(signedIn.body).toMatchObject({ user: { email, tier: 'trial' } });
    const server = openUserClient(test, owner.secret);
    const made = await server.post('/users', { email: buildEmail() }).expect(201);
    expect((made.body as { data: object }).data).toMatchObject({ tier: 'trial' });
  });

  it('is shown the code to deliver, and the same call again until it has answered', async () => {
    const email = buildEmail();
    await client.signUp({ email, phone: '+49 1' });
    await countMails(test, email);
    await hook('users.deliver');
    receiver.answer = (response) => void response.writeHead(500).end();
    await client.post('/login/code', { email });
    expect(await countMails(test, email)).toBe(1);
    answering(() => ({ delivered: true }));
    clock.advance(2_000);
    expect(await countMails(test, email)).toBe(1);
    const [first, second] = receiver.received;
    expect(first!.headers['webhook-id']).toBe(second!.headers['webhook-id']);
    const { document } = second!.event as unknown as { document: { code: string } };
    expect(document).toMatchObject({ template: 'login-code', to: email, user: { email, phone: '+49 1' } });
    await client.post('/login/code/verify', { email, otp: document.code }).expect(200);
  });

  it('makes nothing where it gives no proper answer, unless it may fail', async () => {
    await hook('users.signup');
    await hook('users.login', { onFailure: 'allow' });
    receiver.answer = (response) => void response.writeHead(200).end('{"allow":true,"set":{"phone":"2"}}');
    const email = buildEmail();
    expect(codeOf(await client.post('/signup', { email, password: PASSWORD }))).toBe('503 HOOK_FAILED');
    const other = buildEmail();
    await openUserClient(test, owner.secret).post('/users', { email: other, password: PASSWORD }).expect(503);
    answering(() => ({ allow: true }));
    await client.post('/signup', { email, password: PASSWORD }).expect(201);
    receiver.answer = (response) => void response.writeHead(200).end('{"allow":true,"set":{"tier":"x"}}');
    await client.logIn(email).expect(200);
    receiver.answer = (response) => void response.socket!.destroy();
    await client.logIn(email).expect(200);
  });

  it('is not asked in a request of a handler, which is refused instead', async () => {
    answering(() => ({ allow: true }));
    await hook('users.signup');
    const fields = { email: buildEmail(), password: PASSWORD };
    expect(codeOf(await client.post('/signup', fields, { 'bsvc-hook-depth': '1' }))).toBe('400 HOOK_DEPTH');
    await expect(hook('users.create')).rejects.toMatchObject({ code: 'INVALID_EVENTS' });
    await expect(hook('users.logout')).rejects.toMatchObject({ code: 'INVALID_EVENTS' });
  });
});
