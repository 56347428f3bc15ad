import type { Response } from 'supertest';
import { describe, expect, it } from 'vitest';
import { addCollection } from '../world/collections.js';
import { removeAnonymousUsersJob } from '../world/jobs.js';
import { changeProject, setSocialProvider } from '../world/projects.js';
import { buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { openSocialIssuer } from '../helpers/social-issuer.js';
import { openAuthenticator } from '../helpers/soft-authenticator.js';
import { use, useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD, readMailedCode } from '../helpers/user-client.js';

const clock = createFakeClock(Date.now());
const HOME = 'https://app.shop.example/account';
const [RP, ORIGIN] = ['shop.example', 'https://app.shop.example'];

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_ANONYMOUS_RATE_LIMIT: 'off' }, clock });
const issuer = use(await openSocialIssuer());
const made = await buildProject(test.app);
const passkeys = { rpId: RP, origins: [ORIGIN] };
const shop = {
  ...made,
  project: await changeProject(test.app, made.project, { signIn: { anonymous: true, passkeys } }),
};
const client = openUserClient(test, shop.publishable);
const server = openUserClient(test, shop.secret);
const rls = { mode: 'private' as const, ownerField: 'userId' };
await addCollection(test.app, shop.project, { name: 'notes', fields: [{ name: 'text', type: 'String' }], rls });
await setSocialProvider(test.app, shop.project, {
  name: 'acme',
  issuer: issuer.url,
  clientId: issuer.clientId,
  clientSecret: issuer.clientSecret,
  redirectUrls: [HOME],
  mayBePrivate: true,
});

const codeOf = ({ status, body }: Response): string => `${status} ${(body as { code?: string }).code ?? ''}`;
interface Guest {
  id: string;
  token: string;
  refreshToken: string;
}
async function open(body?: object): Promise<Guest> {
  const reply = await client.post('/signup/anonymous', body);
  expect(codeOf(reply)).toBe('201 ');
  const { user, accessToken } = reply.body as { user: { _id: string }; accessToken: string };
  return { id: user._id, token: accessToken, refreshToken: reply.headers['x-refresh-token'] as string };
}
const me = async (token: string) => (await client.me(token)).body as Record<string, unknown>;
const ask = (token: string, body: object) => client.send('patch', '/update-profile', body, bearer(token));
const verify = (email: string, otp: string, token?: string) =>
  client.post('/verify-email', { email, otp }, token === undefined ? {} : bearer(token));

describe('POST /api/userAuth/signup/anonymous', () => {
  it('makes a user without an address, who stays signed in', async () => {
    const guest = await open({ name: 'Guest' });
    const own = await me(guest.token);
    expect(own).toEqual({
      _id: guest.id,
      name: 'Guest',
      emailVerified: false,
      isAnonymous: true,
      createdAt: expect.any(String) as string,
      updatedAt: expect.any(String) as string,
    });
    expect(codeOf(await client.refresh(guest.refreshToken))).toBe('200 ');
    const { data } = (await client.get('/sessions', bearer(guest.token))).body as { data: { items: object[] } };
    expect(data.items).toMatchObject([{ amr: ['anon'], current: true }]);
    expect(codeOf(await ask(guest.token, { name: 'Ann' }))).toBe('200 ');
    const shown = (await server.get(`/users/${guest.id}`)).body as { data: object };
    expect(shown.data).toMatchObject({ isAnonymous: true, hasPassword: false });
    expect(codeOf(await client.post('/step-up/code', undefined, bearer(guest.token)))).toBe('403 EMAIL_UNVERIFIED');
  });

  it.each([
    [{ email: 'a@example.test' }, '400 VALIDATION_FAILED'],
    [{ password: PASSWORD }, '400 VALIDATION_FAILED'],
    [{ emailVerified: true }, '400 VALIDATION_FAILED'],
    [{ roles: ['admin'] }, '400 VALIDATION_FAILED'],
    [{ _bsvc: {} }, '400 VALIDATION_FAILED'],
    [{ isAnonymous: false }, '400 VALIDATION_FAILED'],
    [['x'], '400 INVALID_BODY'],
  ])('takes no %j', async (body, expected) => {
    expect(codeOf(await client.post('/signup/anonymous', body))).toBe(expected);
  });

  it('is off until the project switches it on, and has a limit of its own', async () => {
    const other = openUserClient(test, (await buildProject(test.app)).publishable);
    expect(codeOf(await other.post('/signup/anonymous'))).toBe('403 ANONYMOUS_OFF');
    const limited = await useTestApp({ settings: { BSVC_ANONYMOUS_RATE_LIMIT: '2/15m' } });
    const made = await buildProject(limited.app);
    await changeProject(limited.app, made.project, { signIn: { anonymous: true } });
    const guests = openUserClient(limited, made.publishable);
    const seen = [];
    for (let each = 0; each < 3; each++) seen.push(codeOf(await guests.post('/signup/anonymous')));
    expect(seen).toEqual(['201 ', '201 ', '429 RATE_LIMITED']);
  });
});

describe('a guest who stays', () => {
  it('by an address: pending until its code is confirmed, under the same id', async () => {
    const guest = await open();
    const email = buildEmail();
    expect(codeOf(await ask(guest.token, { email, password: PASSWORD }))).toBe('200 ');
    expect(await me(guest.token)).toMatchObject({ isAnonymous: true, emailVerified: false });
    expect(codeOf(await client.logIn(email))).toBe('401 INVALID_CREDENTIALS');
    expect(codeOf(await verify(email, await readMailedCode(test, email), guest.token))).toBe('200 ');
    const own = await me(guest.token);
    expect([own._id, own.email, own.emailVerified, own.isAnonymous]).toEqual([guest.id, email, true, undefined]);
    expect(((await client.logIn(email)).body as { user: { _id: string } }).user._id).toBe(guest.id);
  });

  it('is told of a taken address only once the address is proven', async () => {
    const email = buildEmail();
    await server.post('/users', { email, password: PASSWORD, emailVerified: true });
    const guest = await open();
    expect(codeOf(await ask(guest.token, { email }))).toBe('200 ');
    expect(codeOf(await verify(email, '000000', guest.token))).toBe('400 OTP_INVALID');
    const otp = await readMailedCode(test, email);
    // Outside the guest's session nobody says that the two are one person.
    const elsewhere = await verify(email, otp);
    expect([codeOf(elsewhere), (elsewhere.body as { details?: object }).details]).toEqual([
      '409 EMAIL_TAKEN',
      undefined,
    ]);
    expect(codeOf(await verify(email, otp, guest.token))).toBe('409 EMAIL_TAKEN');
    expect(codeOf(await verify(email, otp, guest.token))).toBe('400 OTP_INVALID');
    expect(await me(guest.token)).toMatchObject({ _id: guest.id, isAnonymous: true });
  });

  it('sets no password without an address', async () => {
    const guest = await open();
    expect(codeOf(await ask(guest.token, { password: PASSWORD }))).toBe('400 VALIDATION_FAILED');
    expect(codeOf(await ask(guest.token, { email: buildEmail(), password: 'short' }))).toBe('400 VALIDATION_FAILED');
    expect(codeOf(await ask(guest.token, { email: buildEmail(), password: 7 }))).toBe('400 VALIDATION_FAILED');
  });

  it.each([true, false])(
    'by an identity, with its address unless another account has it (free: %s)',
    async (isFree) => {
      const email = buildEmail();
      if (!isFree) await server.post('/users', { email, password: PASSWORD, emailVerified: true });
      // Long after it came: of a guest the session is all the proof there is.
      const guest = await open();
      clock.advance(11 * 60_000);
      issuer.behaviour = { sub: email, email, emailVerified: true };
      const begun = await client.post('/social/acme/link', {}, bearer(guest.token));
      expect(codeOf(begun)).toBe('200 ');
      const out = (begun.body as { data: { url: string } }).data.url;
      const back = await fetch(await issuer.visit(out), { redirect: 'manual' });
      const rtCode = new URL(back.headers.get('location')!).searchParams.get('rtCode');
      expect(codeOf(await client.post('/social/link', { rtCode }, bearer(guest.token)))).toBe('200 ');
      const own = await me(guest.token);
      expect([own._id, own.email, own.emailVerified, own.isAnonymous]).toEqual([
        guest.id,
        isFree ? email : undefined,
        isFree,
        undefined,
      ]);
    },
  );

  it('by a passkey', async () => {
    const guest = await open();
    const device = openAuthenticator(RP, ORIGIN);
    const options = (await client.post('/passkeys/options', {}, bearer(guest.token))).body as { challenge: string };
    const response = device.create(options);
    expect(codeOf(await client.post('/passkeys', { response }, bearer(guest.token)))).toBe('201 ');
    const challenge = (await client.post('/login/passkey/options')).body as { challenge: string };
    const reply = await client.post('/login/passkey', { response: device.get(challenge) });
    expect((reply.body as { user: object }).user).toMatchObject({ _id: guest.id, emailVerified: false });
    expect((reply.body as { user: object }).user).not.toHaveProperty('isAnonymous');
    expect(codeOf(await client.post('/mfa/totp', {}, bearer(guest.token)))).toBe('403 STEP_UP_REQUIRED');
  });
});

describe('a guest whose address another account has', () => {
  interface Taken {
    details: { field: string; rule: string; mergeToken: string }[];
  }
  const take = (mergeToken: string) => server.post('/merges', { mergeToken });

  /** Proves the address of an account as a guest, and answers guest and token. */
  async function prove(email: string) {
    const guest = await open();
    expect(codeOf(await ask(guest.token, { email }))).toBe('200 ');
    const refused = await verify(email, await readMailedCode(test, email), guest.token);
    expect(codeOf(refused)).toBe('409 EMAIL_TAKEN');
    const { details } = refused.body as Taken;
    expect(details).toMatchObject([{ field: 'email', rule: 'merge' }]);
    return { guest, mergeToken: details[0]!.mergeToken };
  }

  /** As the guide says: the owner of a document never changes. */
  async function moveNotes(from: string, to: string): Promise<void> {
    const call = async (method: string, path: string, body?: object): Promise<{ data: { items: Note[] } }> => {
      const headers = { 'x-api-key': shop.secret, 'content-type': 'application/json' };
      const sent = await fetch(`${test.url}/api${path}`, { method, headers, body: body && JSON.stringify(body) });
      expect(sent.ok).toBe(true);
      return (await sent.json()) as { data: { items: Note[] } };
    };
    const textsOf = async (user: string): Promise<string[]> =>
      (await call('GET', `/data/notes?userId=${user}`)).data.items.map(({ text }) => text);
    await call('POST', '/data/notes', { text: 'mine', userId: from });
    const { items } = (await call('GET', `/data/notes?userId=${from}`)).data;
    const operations = items.flatMap(({ _id: id, text }) => [
      { op: 'insert', collection: 'notes', body: { text, userId: to } },
      { op: 'remove', collection: 'notes', id },
    ]);
    await call('POST', '/batch', { operations });
    expect([await textsOf(from), await textsOf(to)]).toEqual([[], ['mine']]);
  }
  interface Note {
    _id: string;
    text: string;
  }

  it('is handed over to that account by the project’s server, once, within five minutes', async () => {
    const email = buildEmail();
    const made = await server.post('/users', { email, password: PASSWORD, emailVerified: true });
    const { guest, mergeToken } = await prove(email);
    expect(codeOf(await client.post('/merges', { mergeToken }))).toBe('403 SECRET_KEY_REQUIRED');
    const other = openUserClient(test, (await buildProject(test.app)).secret);
    expect(codeOf(await other.post('/merges', { mergeToken }))).toBe('400 MERGE_TOKEN_INVALID');
    const replies = await Promise.all(Array.from({ length: 4 }, () => take(mergeToken)));
    expect(replies.map(codeOf).sort()).toEqual(['200 ', ...Array<string>(3).fill('400 MERGE_TOKEN_INVALID')]);
    const { data } = replies.find(({ status }) => status === 200)!.body as { data: Record<string, { _id: string }> };
    expect([data.anonymous!._id, data.user!._id]).toEqual([
      guest.id,
      (made.body as { data: { _id: string } }).data._id,
    ]);
    expect(JSON.stringify(data)).not.toContain('_bsvc');
    await moveNotes(data.anonymous!._id, data.user!._id);
    clock.advance(61_000);
    const late = await prove(email);
    clock.advance(5 * 60_000);
    expect(codeOf(await take(late.mergeToken))).toBe('400 MERGE_TOKEN_INVALID');
  });

  it('takes an account over that nobody had proven, so that no stranger gets what the guest has', async () => {
    const stranger = (await client.signUp()).body as { accessToken: string; user: { email: string } };
    const { email } = stranger.user;
    clock.advance(61_000);
    const { mergeToken } = await prove(email);
    expect(codeOf(await client.logIn(email))).toBe('401 INVALID_CREDENTIALS');
    expect((await client.me(stranger.accessToken)).status).toBe(401);
    expect((await take(mergeToken)).body).toMatchObject({
      data: { user: { email, emailVerified: true, hasPassword: false } },
    });
  });

  it('is not handed over once either account is not what it was', async () => {
    const changes: ((guest: string, email: string) => PromiseLike<Response>)[] = [
      (guest) => server.send('delete', `/users/${guest}`),
      (_, email) => server.send('delete', `/users/${email}`),
      (_, email) => server.post(`/users/${email}/disable`),
      (_, email) => server.send('patch', `/users/${email}`, { email: buildEmail() }),
      (_, email) => server.send('patch', `/users/${email}`, { email: buildEmail(), emailVerified: true }),
      (guest) => server.send('patch', `/users/${guest}`, { email: buildEmail() }),
      (guest) => server.post(`/users/${guest}/disable`),
    ];
    for (const change of changes) {
      const email = buildEmail();
      await server.post('/users', { email, emailVerified: true });
      const { guest, mergeToken } = await prove(email);
      expect((await change(guest.id, email)).status).toBe(200);
      expect(codeOf(await take(mergeToken))).toBe('400 MERGE_TOKEN_INVALID');
    }
    const email = buildEmail();
    await server.post('/users', { email, emailVerified: true });
    await server.post(`/users/${email}/disable`);
    const guest = await open();
    await ask(guest.token, { email });
    const refused = await verify(email, await readMailedCode(test, email), guest.token);
    expect([codeOf(refused), (refused.body as Partial<Taken>).details]).toEqual(['409 EMAIL_TAKEN', undefined]);
  });
});

describe('a guest to whom nobody can come back', () => {
  it('goes after a while, and no other', async () => {
    await changeProject(test.app, shop.project, { signIn: { anonymousKeep: '1h' } });
    const [gone, live, young] = [await open(), await open(), await open()];
    await client.send('post', '/logout', undefined, { 'x-refresh-token': gone.refreshToken });
    clock.advance(2 * 3_600_000);
    await client.send('post', '/logout', undefined, { 'x-refresh-token': young.refreshToken });
    const late = await open();
    await client.send('post', '/logout', undefined, { 'x-refresh-token': late.refreshToken });
    await removeAnonymousUsersJob.run(test.app, {}, { stopping: new AbortController().signal } as never);
    const found = await Promise.all(
      [gone, live, young, late].map(async ({ id }) => (await server.get(`/users/${id}`)).status),
    );
    expect(found).toEqual([404, 200, 404, 200]);
  });
});
