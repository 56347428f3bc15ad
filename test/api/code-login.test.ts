import type { Response } from 'supertest';
import { describe, expect, it } from 'vitest';
import { drainJobs, listJobs, listOutbox, JOB_PRIORITIES } from '../world/jobs.js';
import { type SignInSettings, changeProject } from '../world/projects.js';
import { disableUser, requireUser } from '../world/users.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
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
const PAGE = 'https://shop.example/sign-in';

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });

interface Shop extends TestProject {
  client: UserClient;
}

async function openShop(signIn: SignInSettings): Promise<Shop> {
  const shop = await buildProject(test.app);
  const project = await changeProject(test.app, shop.project, { signIn });
  return { ...shop, project, client: openUserClient(test, shop.publishable) };
}

const codeOf = (reply: Response): string => `${reply.status} ${(reply.body as { code?: string }).code ?? ''}`;
const tokenOf = (reply: Response): string => (reply.body as { accessToken: string }).accessToken;
const verify = ({ client }: Shop, email: string, otp: string) => client.post('/login/code/verify', { email, otp });

async function codeFor({ client }: Shop, email: string, redirect?: string): Promise<string> {
  expect(codeOf(await client.post('/login/code', { email, redirect }))).toBe('200 ');
  return readMailedCode(test, email);
}

describe('sign-in by a mailed code', () => {
  it('is off until the project switches it on, and says by which command', async () => {
    const shop = await openShop({ codeLogin: 'off' });
    const email = ((await shop.client.signUp()).body as { user: { email: string } }).user.email;
    const refused = await shop.client.post('/login/code', { email });
    expect(codeOf(refused)).toBe('403 CODE_LOGIN_OFF');
    expect((refused.body as { message: string }).message).toContain(
      `bsvc project update ${shop.project.name} --code-login existing`,
    );
    expect(codeOf(await verify(shop, email, '123456'))).toBe('403 CODE_LOGIN_OFF');
  });

  it('opens one session however many send the code', async () => {
    const shop = await openShop({ codeLogin: 'existing' });
    const email = ((await shop.client.signUp()).body as { user: { email: string } }).user.email;
    const otp = await codeFor(shop, email);
    const replies = await Promise.all(Array.from({ length: 5 }, () => verify(shop, email, otp)));
    expect(replies.map(codeOf).sort()).toEqual(['200 ', ...Array<string>(4).fill('400 OTP_INVALID')]);
    const token = tokenOf(replies.find(({ status }) => status === 200)!);
    const { items } = (
      (await shop.client.get('/sessions', bearer(token))).body as { data: { items: { amr: string[] }[] } }
    ).data;
    expect(items.map(({ amr }) => amr)).toEqual([['otp']]);
  });

  it('is mailed before what nobody waits for, and once in a minute', async () => {
    const shop = await openShop({ codeLogin: 'existing' });
    const email = ((await shop.client.signUp()).body as { user: { email: string } }).user.email;
    await drainJobs(test.app);
    for (const status of [200, 429]) expect((await shop.client.post('/login/code', { email })).status).toBe(status);
    const waiting = await listJobs(test.app, { name: 'users.mailCode' });
    expect(waiting.map(({ priority }) => priority)).toEqual([JOB_PRIORITIES[0]]);
  });

  it('answers alike for an address without an account, and mails it nothing', async () => {
    const shop = await openShop({ codeLogin: 'existing', redirects: [PAGE] });
    const known = ((await shop.client.signUp()).body as { user: { email: string } }).user.email;
    const unknown = buildEmail();
    const bodies = await Promise.all(
      [known, unknown].map(async (email) => {
        const sent = await shop.client.post('/login/code', { email, redirect: PAGE });
        const tried = await verify(shop, email, '000000');
        return [sent, tried].map(({ status, body }) => [status, { ...(body as object), requestId: '' }]);
      }),
    );
    expect(bodies[0]).toEqual(bodies[1]);
    expect(await countMails(test, unknown)).toBe(0);
  });

  it('makes an account of a proven address where the project says signup, once', async () => {
    const shop = await openShop({ codeLogin: 'signup' });
    const email = buildEmail();
    const otp = await codeFor(shop, email);
    const reply = await verify(shop, email, otp);
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ user: { email, emailVerified: true } });
    clock.advance(61_000);
    const again = await verify(shop, email, await codeFor(shop, email));
    expect((again.body as { user: object }).user).toEqual((reply.body as { user: object }).user);
    expect(codeOf(await shop.client.logIn(email, 'without a password'))).toBe('401 INVALID_CREDENTIALS');
  });

  it('takes an account over from who never proved its address', async () => {
    const shop = await openShop({ codeLogin: 'existing' });
    const stranger = await shop.client.signUp();
    const { email } = (stranger.body as { user: { email: string } }).user;
    clock.advance(1000);
    const reply = await verify(shop, email, await codeFor(shop, email));
    expect(reply.body).toMatchObject({ user: { emailVerified: true } });
    expect(codeOf(await shop.client.me(tokenOf(stranger)))).toBe('401 TOKEN_INVALID');
    expect(codeOf(await shop.client.logIn(email))).toBe('401 INVALID_CREDENTIALS');
    expect(codeOf(await shop.client.me(tokenOf(reply)))).toBe('200 ');
  });

  it('leaves a proven account its password', async () => {
    const shop = await openShop({ codeLogin: 'existing' });
    const email = buildEmail();
    const made = { email, password: PASSWORD, emailVerified: true };
    expect((await openUserClient(test, shop.secret).post('/users', made)).status).toBe(201);
    expect((await verify(shop, email, await codeFor(shop, email))).status).toBe(200);
    expect((await shop.client.logIn(email)).status).toBe(200);
  });

  it('mails nothing to a disabled account, and refuses the code it had', async () => {
    const shop = await openShop({ codeLogin: 'signup' });
    const email = ((await shop.client.signUp()).body as { user: { email: string } }).user.email;
    const otp = await codeFor(shop, email);
    await disableUser(test.app, shop.project, await requireUser(test.app, shop.project._id, email));
    expect(codeOf(await verify(shop, email, otp))).toBe('403 ACCOUNT_DISABLED');
    const before = await countMails(test, email);
    clock.advance(61_000);
    expect(codeOf(await shop.client.post('/login/code', { email }))).toBe('200 ');
    expect(await countMails(test, email)).toBe(before);
  });

  it('has the mail link to the project’s own addresses only, with the code behind #', async () => {
    const shop = await openShop({ codeLogin: 'signup', redirects: [PAGE] });
    const email = 'o+brien@example.test';
    const elsewhere = await shop.client.post('/login/code', { email, redirect: `${PAGE}/other` });
    expect(codeOf(elsewhere)).toBe('400 REDIRECT_NOT_ALLOWED');
    const otp = await codeFor(shop, email, PAGE);
    const [mail] = await listOutbox(test.app, { to: email, limit: 1 });
    expect(mail!.text).toContain(`${PAGE}#email=o%2Bbrien%40example.test&otp=${otp}`);
    const link = new URL(/https:\S+/.exec(mail!.text!)![0]);
    const posted = Object.fromEntries(new URLSearchParams(link.hash.slice(1)));
    // What a scanner of mail opens changes nothing: no route signs in by GET.
    expect(codeOf(await shop.client.get(`/login/code/verify${link.search}`))).toBe('405 METHOD_NOT_ALLOWED');
    expect((await shop.client.post('/login/code/verify', posted)).status).toBe(200);
  });

  it.each(['javascript:alert(1)', 'http://shop.example/', 'https://shop.example/#a', 'ftp://x/'])(
    'links to no address like %s',
    async (redirect) => {
      await expect(openShop({ redirects: [redirect] })).rejects.toMatchObject({ code: 'INVALID_SIGN_IN' });
    },
  );
});
