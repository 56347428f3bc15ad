import { createHash, createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { jwtVerify } from 'jose';
import type { Response as Reply } from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { changeCollection } from '../../world/collections.js';
import { changeProject, setSocialProvider } from '../../world/projects.js';
import { totpCode } from '../../world/users.js';
import { buildProject } from '../../helpers/build-project.js';
import { openCookieJar } from '../../helpers/cookie-jar.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openOidcIssuer } from '../../helpers/oidc-issuer.js';
import { openSocialIssuer } from '../../helpers/social-issuer.js';
import { use, useTestApp } from '../../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD } from '../../helpers/user-client.js';

const REFUSED = '401 ID_TOKEN_INVALID';
const HOME = 'https://app.example.test/signed-in';
const clock = createFakeClock(Date.now());
let people = 0;
beforeEach(() => {
  issuer.person = { sub: `person-${++people}`, email: buildEmail(), emailVerified: true, name: 'Ada' };
});

const provider = (change = {}) => ({
  name: 'acme',
  issuer: issuer.url,
  clientId: issuer.clientId,
  clientSecret: issuer.clientSecret,
  appClientIds: [issuer.appClientId],
  redirectUrls: [HOME, `${HOME}/account`],
  mayBePrivate: true,
  ...change,
});

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const issuer = use(await openOidcIssuer(`${test.url}/api/userAuth/social/acme/callback`));
const shop = await buildProject(test.app);
const client = openUserClient(test, shop.publishable);
const server = openUserClient(test, shop.secret);
await setSocialProvider(test.app, shop.project, provider());
const codeOf = ({ status, body }: Reply): string => `${status} ${(body as { code?: string }).code ?? ''}`;
const hash = (nonce: string): string => createHash('sha256').update(nonce).digest('hex');
interface SignedIn {
  accessToken: string;
  user: { _id: string; email: string; emailVerified: boolean };
}
const inOf = ({ body }: Reply): SignedIn => body as SignedIn;

async function signIn(path = 'acme'): Promise<Reply> {
  const jar = openCookieJar();
  const out = await jar.fetch(`${test.url}/api/userAuth/social/${path}/start?key=${shop.publishable}`);
  const { address } = await issuer.visit(out.headers.get('location')!);
  const home = new URL((await jar.fetch(address)).headers.get('location')!);
  return client.post('/social/exchange', { rtCode: home.searchParams.get('rtCode') });
}

describe('sign-in at a certified issuer', () => {
  it('makes an account and finds it again', async () => {
    const first = await signIn();
    expect([codeOf(first), inOf(first).user]).toEqual([
      '200 ',
      expect.objectContaining({ email: issuer.person.email, emailVerified: true, name: 'Ada' }),
    ]);
    expect(inOf(await signIn()).user._id).toBe(inOf(first).user._id);
  });
});

describe('POST /api/userAuth/social/:provider/id-token', () => {
  const post = (idToken: string, nonce: string) => client.post('/social/acme/id-token', { idToken, nonce });

  it('signs in as the sign-in by browser does, once per token', async () => {
    const nonce = randomUUID();
    const idToken = await issuer.idToken(hash(nonce));
    const replies = await Promise.all(Array.from({ length: 4 }, () => post(idToken, nonce)));
    expect(replies.map(codeOf).sort()).toEqual(['200 ', ...Array(3).fill('401 ID_TOKEN_INVALID')]);
    const { user, accessToken } = inOf(replies.find(({ status }) => status === 200)!);
    expect(user).toMatchObject({ email: issuer.person.email, emailVerified: true });
    expect((await client.me(accessToken)).status).toBe(200);
    expect(inOf(await signIn()).user._id).toBe(user._id);
    // Other bytes, the same token.
    expect(codeOf(await post(`${idToken}=`, nonce))).toBe('401 ID_TOKEN_INVALID');
  });

  it.each([
    ['another nonce', async () => post(await issuer.idToken(hash('a')), 'b')],
    ['the nonce as the token has it', async () => post(await issuer.idToken(hash('a')), hash('a'))],
    ['another client', async () => post(await issuer.idToken(hash('a'), 'stranger'), 'a')],
    ['other claims', async () => post(changeClaims(await issuer.idToken(hash('a'))), 'a')],
    ['no signature', async () => post(unsign(await issuer.idToken(hash('a'))), 'a')],
    ['no token', () => post('x', 'a')],
  ])('refuses a token of %s', async (_what, send) => {
    expect(codeOf(await send())).toBe('401 ID_TOKEN_INVALID');
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['one client, the provider’s', { aud: ['client-1'] }, '200 '],
    ['one client, got by another app of its owner', { aud: 'client-1', azp: 'another-app' }, '200 '],
    ['several clients, issued to the provider’s', { aud: ['other', 'client-1'], azp: 'client-1' }, '200 '],
    ['several clients, issued to an app of the project', { aud: ['client-1', 'other'], azp: 'shop-app' }, '200 '],
    ['several clients, issued to one of the others', { aud: ['client-1', 'other'], azp: 'other' }, REFUSED],
    ['several clients, issued to nobody in particular', { aud: ['client-1', 'other'] }, REFUSED],
    ['several clients, issued to a list', { aud: ['client-1', 'other'], azp: ['client-1'] }, REFUSED],
    ['others', { aud: ['other', 'another'], azp: 'client-1' }, REFUSED],
  ])('judges a token for %s', async (_what, claims, expected) => {
    const double = use(await openSocialIssuer());
    const at = { name: 'several', issuer: double.url, clientId: double.clientId, appClientIds: ['shop-app'] };
    await setSocialProvider(test.app, shop.project, provider(at));
    double.behaviour = { sub: `person-${people}`, email: buildEmail(), emailVerified: true, claims };
    const sent = { idToken: double.idToken(hash('a')), nonce: 'a' };
    expect(codeOf(await client.post('/social/several/id-token', sent))).toBe(expected);
  });

  it('refuses a token that has expired', async () => {
    const idToken = await issuer.idToken(hash('late'));
    clock.advance(2 * 3_600_000);
    try {
      expect(codeOf(await post(idToken, 'late'))).toBe('401 ID_TOKEN_INVALID');
    } finally {
      clock.advance(-2 * 3_600_000);
    }
  });

  it('makes no account for an address that nobody vouches for, and opens none that is disabled', async () => {
    issuer.person.emailVerified = false;
    expect(codeOf(await post(await issuer.idToken(hash('1')), '1'))).toBe('403 EMAIL_UNVERIFIED');
    issuer.person.emailVerified = 'true';
    const { user } = inOf(await post(await issuer.idToken(hash('2')), '2'));
    await server.post(`/users/${user._id}/disable`);
    expect(codeOf(await post(await issuer.idToken(hash('3')), '3'))).toBe('403 ACCOUNT_DISABLED');
  });

  it('says when the issuer cannot be reached, and that GitHub has no id tokens', async () => {
    await setSocialProvider(test.app, shop.project, provider({ name: 'gone', issuer: 'http://127.0.0.1:9' }));
    await setSocialProvider(test.app, shop.project, provider({ name: 'github' }));
    const body = { idToken: await issuer.idToken(hash('a')), nonce: 'a' };
    expect(codeOf(await client.post('/social/gone/id-token', body))).toBe('503 PROVIDER_UNAVAILABLE');
    expect(codeOf(await client.post('/social/github/id-token', body))).toBe('401 ID_TOKEN_INVALID');
    expect(codeOf(await client.post('/social/nobody/id-token', body))).toBe('404 PROVIDER_NOT_FOUND');
  });

  it('makes no account that lacks fields of the schema', async () => {
    const strict = await buildProject(test.app);
    await changeCollection(test.app, strict.project._id, 'users', ({ fields }) => ({
      fields: [...fields, { name: 'town', type: 'String', required: true }],
    }));
    await setSocialProvider(test.app, strict.project, provider());
    const body = { idToken: await issuer.idToken(hash('7')), nonce: '7' };
    const reply = await openUserClient(test, strict.publishable).post('/social/acme/id-token', body);
    expect(codeOf(reply)).toBe('403 PROFILE_INCOMPLETE');
  });

  it('asks for the second factor like every sign-in', async () => {
    await changeProject(test.app, shop.project, { signIn: { mfa: 'optional' } });
    const { user, accessToken } = inOf(await post(await issuer.idToken(hash('5')), '5'));
    expect(user.emailVerified).toBe(true);
    const { secret } = (await client.post('/mfa/totp', {}, bearer(accessToken))).body.data as { secret: string };
    const code = totpCode(secret, clock.now());
    expect(codeOf(await client.post('/mfa/totp/confirm', { code }, bearer(accessToken)))).toBe('200 ');
    expect(codeOf(await post(await issuer.idToken(hash('6')), '6'))).toBe('401 MFA_REQUIRED');
  });
});

function changeClaims(token: string): string {
  const [header, claims, signature] = token.split('.') as [string, string, string];
  const changed = { ...(JSON.parse(Buffer.from(claims, 'base64url').toString()) as object), sub: 'somebody-else' };
  return [header, Buffer.from(JSON.stringify(changed)).toString('base64url'), signature].join('.');
}

function unsign(token: string): string {
  return [Buffer.from('{"alg":"none"}').toString('base64url'), token.split('.')[1], ''].join('.');
}

describe('linking an identity', () => {
  interface Account {
    token: string;
    email: string;
    id: string;
  }
  async function open(): Promise<Account> {
    const email = buildEmail();
    await server.post('/users', { email, password: PASSWORD, emailVerified: true });
    const { accessToken, user } = inOf(await client.logIn(email));
    return { token: accessToken, email, id: user._id };
  }
  const begin = (token: string, body: object = {}) => client.post('/social/acme/link', body, bearer(token));
  async function goOut(token: string, body: object = {}): Promise<URL> {
    const begun = await begin(token, body);
    expect(codeOf(begun)).toBe('200 ');
    const { address } = await issuer.visit((begun.body as { data: { url: string } }).data.url);
    return new URL((await fetch(address, { redirect: 'manual' })).headers.get('location')!);
  }
  const codeIn = (home: URL): string => home.searchParams.get('rtCode')!;
  const finish = (token: string, rtCode: string, more: object = {}) =>
    client.post('/social/link', { rtCode, ...more }, bearer(token));

  it('opens the account by an identity of any address', async () => {
    const ada = await open();
    const home = await goOut(ada.token, { redirect: `${HOME}/account`, state: 'mine' });
    expect([`${home.origin}${home.pathname}`, home.searchParams.get('state')]).toEqual([`${HOME}/account`, 'mine']);
    expect(codeOf(await finish(ada.token, codeIn(home)))).toBe('200 ');
    expect(codeOf(await finish(ada.token, codeIn(home)))).toBe('400 SOCIAL_CODE_INVALID');
    const { user } = inOf(await signIn());
    expect([user._id, user.email]).toEqual([ada.id, ada.email]);
    // Again: nothing to do.
    expect(codeOf(await finish(ada.token, codeIn(await goOut(ada.token))))).toBe('200 ');
    const listed = await client.get('/identities', bearer(ada.token));
    expect((listed.body as { data: { items: object[] } }).data.items).toHaveLength(1);
  });

  it('is finished by the user who began it alone, and by no sign-in', async () => {
    const [ada, bob] = [await open(), await open()];
    const rtCode = codeIn(await goOut(ada.token));
    expect(codeOf(await finish(bob.token, rtCode))).toBe('400 SOCIAL_CODE_INVALID');
    expect(codeOf(await client.post('/social/exchange', { rtCode }))).toBe('401 SOCIAL_CODE_INVALID');
    expect(codeOf(await finish(ada.token, rtCode))).toBe('200 ');
    expect(codeOf(await finish(bob.token, codeIn(await goOut(bob.token))))).toBe('409 IDENTITY_TAKEN');
  });

  it('wants the verifier of its challenge', async () => {
    const ada = await open();
    const verifier = 'v'.repeat(43);
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const rtCode = async () => codeIn(await goOut(ada.token, { code_challenge: challenge }));
    expect(codeOf(await finish(ada.token, await rtCode()))).toBe('400 SOCIAL_CODE_INVALID');
    expect(codeOf(await finish(ada.token, await rtCode(), { code_verifier: verifier }))).toBe('200 ');
  });

  it('needs a fresh proof, a listed address, and ends with the sessions of the account', async () => {
    const ada = await open();
    expect(codeOf(await begin(ada.token, { redirect: 'https://evil.example.test' }))).toBe('400 REDIRECT_NOT_ALLOWED');
    const rtCode = codeIn(await goOut(ada.token));
    await client.send('delete', '/sessions/others', {}, bearer(ada.token));
    expect(codeOf(await finish(ada.token, rtCode))).toBe('400 SOCIAL_CODE_INVALID');
    clock.advance(11 * 60_000);
    const { accessToken } = inOf(await client.post('/login', { email: ada.email, password: PASSWORD }));
    clock.advance(11 * 60_000);
    expect(codeOf(await begin(accessToken))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await begin(accessToken, { currentPassword: PASSWORD }))).toBe('200 ');
    clock.advance(-22 * 60_000);
  });

  it('is undone with a fresh proof, and not when it is the last way in', async () => {
    const first = await signIn();
    const { accessToken } = inOf(first);
    const unlink = (token: string) => client.send('delete', '/identities/acme', {}, bearer(token));
    expect(codeOf(await unlink(accessToken))).toBe('409 LAST_SIGN_IN_METHOD');
    const ada = await open();
    issuer.person = { sub: 'another', email: buildEmail(), emailVerified: true };
    await finish(ada.token, codeIn(await goOut(ada.token)));
    expect(codeOf(await unlink(ada.token))).toBe('200 ');
    expect(inOf(await signIn()).user._id).not.toBe(ada.id);
  });
});

describe('Apple', () => {
  const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
  const apple = { name: 'apple', apple: { teamId: 'TEAM123456', keyId: 'KEY1234567' }, clientSecret: String(pem) };

  it('posts a form, which the browser brings on with its cookie', async () => {
    await setSocialProvider(test.app, shop.project, provider(apple));
    const jar = openCookieJar();
    const out = new URL(
      (await jar.fetch(`${test.url}/api/userAuth/social/apple/start?key=${shop.publishable}`)).headers.get('location')!,
    );
    expect([out.searchParams.get('response_mode'), out.searchParams.get('scope')]).toEqual([
      'form_post',
      'openid email name',
    ]);
    const callback = `${test.url}/api/userAuth/social/apple/callback`;
    const form = new URLSearchParams({ state: out.searchParams.get('state')!, error: 'access_denied', user: 'x' });
    const posted = await fetch(callback, { method: 'POST', body: form, redirect: 'manual' });
    expect(posted.status).toBe(303);
    const next = posted.headers.get('location')!;
    expect(next).not.toContain('user=');
    const home = await jar.fetch(next);
    expect([...new URL(home.headers.get('location')!).searchParams]).toEqual([['error', 'access_denied']]);
    const unknown = await fetch(callback, { method: 'POST', body: new URLSearchParams({ state: 'x' }) });
    expect([unknown.status, ((await unknown.json()) as { code: string }).code]).toEqual([400, 'SOCIAL_STATE_INVALID']);
    const huge = await fetch(callback, { method: 'POST', body: new URLSearchParams({ state: 'x'.repeat(20_000) }) });
    expect(huge.status).toBe(413);
  });

  it('gets a secret of its own for each exchange', async () => {
    const double = await openSocialIssuer();
    double.behaviour = { sub: 'apple-1', email: buildEmail(), emailVerified: true };
    double.clientId = 'com.shop.web';
    const seen: string[] = [];
    double.takesSecret = (secret) => seen.push(secret) > 0;
    const at = { name: 'apple', issuer: double.url, clientId: double.clientId, redirectUrls: [HOME] };
    await setSocialProvider(test.app, shop.project, { ...at, ...apple, mayBePrivate: true });
    const jar = openCookieJar();
    const out = await jar.fetch(`${test.url}/api/userAuth/social/apple/start?key=${shop.publishable}`);
    const back = new URL(await double.visit(out.headers.get('location')!));
    const form = new URLSearchParams(back.search);
    const posted = await fetch(`${back.origin}${back.pathname}`, { method: 'POST', body: form, redirect: 'manual' });
    const home = new URL((await jar.fetch(posted.headers.get('location')!)).headers.get('location')!);
    expect(codeOf(await client.post('/social/exchange', { rtCode: home.searchParams.get('rtCode') }))).toBe('200 ');
    await double.close();
    const { payload, protectedHeader } = await jwtVerify(seen[0]!, createPublicKey(String(pem)), {
      issuer: 'TEAM123456',
      subject: 'com.shop.web',
      audience: double.url,
      currentDate: new Date(clock.now()),
    });
    expect([protectedHeader.alg, protectedHeader.kid, payload.exp! - payload.iat!]).toEqual([
      'ES256',
      'KEY1234567',
      300,
    ]);
  });

  it.each([
    ['a key of another kind', { ...apple, clientSecret: 'secret' }],
    ['no key', { name: 'apple', issuer: undefined }],
    ['a key of another provider', { ...apple, name: 'acme' }],
    ['a team that is none', { ...apple, apple: { teamId: 'a b', keyId: 'K' } }],
  ])('is not set up with %s', async (_what, change) => {
    await expect(setSocialProvider(test.app, shop.project, provider(change))).rejects.toMatchObject({
      code: 'INVALID_PROVIDER',
    });
  });
});
