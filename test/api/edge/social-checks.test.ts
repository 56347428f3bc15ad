import { createHash, randomBytes } from 'node:crypto';
import { ObjectId } from 'bson';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setSocialProvider } from '../../world/projects.js';
import { sessionStore } from '../../world/stored.js';
import { buildProject } from '../../helpers/build-project.js';
import { openCookieJar } from '../../helpers/cookie-jar.js';
import { HOME, openSocialBrowser, type SocialBrowser } from '../../helpers/social-browser.js';
import { openSocialIssuer } from '../../helpers/social-issuer.js';
import { use, useTestApp } from '../../helpers/use.js';
import { buildEmail, openUserClient, type UserClient } from '../../helpers/user-client.js';

let people = 0;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
const issuer = use(await openSocialIssuer());
const project = await buildProject(test.app);
const client = openUserClient(test, project.publishable);
const browser = await openSocialBrowser(test, issuer, project, client);
beforeEach(() => {
  people++;
});

const person = (change = {}) => ({ sub: `person-${people}`, email: buildEmail(), emailVerified: true, ...change });
const verifier = randomBytes(32).toString('base64url');
const challenge = createHash('sha256').update(verifier).digest('base64url');
const start = (query: string): Promise<Response> =>
  fetch(`${test.url}/api/userAuth/social/acme/start?key=${project.publishable}${query}`, { redirect: 'manual' });

describe('state of the application', () => {
  const state = 'a b&c=d?/é+%';

  it('comes back beside the code', async () => {
    const home = await browser.visit(person(), `&state=${encodeURIComponent(state)}`);
    expect(home.searchParams.get('state')).toBe(state);
    expect(home.searchParams.has('rtCode')).toBe(true);
  });

  it.each([
    ['the person declines', { declines: true }, 'access_denied'],
    ['the provider fails', { broken: true }, 'provider_failed'],
    ['the address is not vouched for', { emailVerified: false }, 'email_unverified'],
  ])('comes back beside the error when %s', async (_what, change, error) => {
    const home = await browser.visit(person(change), `&state=${encodeURIComponent(state)}`);
    expect([...home.searchParams]).toEqual([
      ['error', error],
      ['state', state],
    ]);
  });

  it('is absent when none was sent', async () => {
    expect([...(await browser.visit(person())).searchParams.keys()]).toEqual(['rtCode']);
  });
});

describe('code_challenge of the application', () => {
  const exchange = (home: URL, more: object) =>
    client.post('/social/exchange', { rtCode: home.searchParams.get('rtCode'), ...more });

  it('lets only the holder of the verifier exchange the code', async () => {
    const query = `&code_challenge=${challenge}&code_challenge_method=S256`;
    const good = await exchange(await browser.visit(person(), query), { code_verifier: verifier });
    expect(good.status).toBe(200);
    for (const more of [{}, { code_verifier: null }, { code_verifier: 'x'.repeat(43) }]) {
      const home = await browser.visit(person(), query);
      const reply = await exchange(home, more);
      expect([reply.status, (reply.body as { code: string }).code]).toEqual([401, 'SOCIAL_CODE_INVALID']);
      // A code that was tried is used up.
      expect((await exchange(home, { code_verifier: verifier })).status).toBe(401);
    }
  });

  it('cannot be stripped on the way: a verifier needs its challenge', async () => {
    const reply = await exchange(await browser.visit(person()), { code_verifier: verifier });
    expect([reply.status, (reply.body as { code: string }).code]).toEqual([401, 'SOCIAL_CODE_INVALID']);
  });

  it.each([
    ['a plain challenge', `&code_challenge=${challenge}&code_challenge_method=plain`],
    ['a method without a challenge', '&code_challenge_method=S256'],
    ['a challenge that is no SHA-256', '&code_challenge=abc'],
    ['two challenges', `&code_challenge=${challenge}&code_challenge=${challenge}`],
    ['two states', '&state=a&state=b'],
    ['a state of 513 characters', `&state=${'a'.repeat(513)}`],
  ])('is refused with %s', async (_what, query) => {
    const reply = await start(query);
    expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([400, 'INVALID_QUERY']);
  });

  it.each([42, 'short', 'ü'.repeat(43), 'a'.repeat(129)])('answers 400 to the verifier %j', async (code_verifier) => {
    const reply = await client.post('/social/exchange', { rtCode: 'x', code_verifier });
    expect([reply.status, (reply.body as { code: string }).code]).toEqual([400, 'VALIDATION_FAILED']);
  });
});

describe('#token= in the address of the return', () => {
  let open: SocialBrowser;
  let user: UserClient;
  beforeAll(async () => {
    const { url, clientId, clientSecret } = issuer;
    const settings = { name: 'acme', issuer: url, clientId, clientSecret, redirectUrls: [HOME] };
    const shop = await buildProject(test.app);
    user = openUserClient(test, shop.publishable);
    open = await openSocialBrowser(test, issuer, shop, user);
    await setSocialProvider(test.app, shop.project, { ...settings, tokenInAddress: true });
  });
  const tokenIn = ({ hash }: URL): string | null => new URLSearchParams(hash.slice(1)).get('token');

  it('stands beside the code, opens the account, and ends with the exchange', async () => {
    const home = await open.visit(person(), '&state=mine');
    expect([...home.searchParams.keys()]).toEqual(['rtCode', 'state']);
    const token = tokenIn(home)!;
    expect((await user.me(token)).status).toBe(200);
    // As the hosted service's SDK sends it: with the token of the address in head and body.
    const reply = await user
      .post('/social/exchange', { token, rtCode: home.searchParams.get('rtCode') })
      .set('Authorization', `Bearer ${token}`);
    const { refreshToken, accessToken } = reply.body as { refreshToken: string; accessToken: string };
    expect(reply.status).toBe(200);
    expect((await user.me(token)).status).toBe(401);
    expect((await user.me(accessToken)).status).toBe(200);
    expect((await user.refresh(refreshToken)).status).toBe(200);
    const userId = new ObjectId((reply.body as { user: { _id: string } }).user._id);
    expect(await sessionStore(test.app).countDocuments({ userId, revokedAt: null })).toBe(1);
  });

  it('lasts no longer than a token when nobody exchanges the code', async () => {
    await open.visit(person());
    const [session] = await sessionStore(test.app)
      .find({ revokedAt: null })
      .sort({ createdAt: -1, _id: -1 })
      .limit(1)
      .toArray();
    expect(session!.expiresAt.getTime() - session!.createdAt.getTime()).toBeLessThanOrEqual(
      test.app.config.accessTokenTtlMs + 1000,
    );
  });

  it('is not there for an application that sent a challenge, nor beside an error', async () => {
    const challenged = await open.visit(person(), `&code_challenge=${challenge}`);
    const declined = await open.visit(person({ declines: true }));
    expect([challenged.hash, declined.hash]).toEqual(['', '']);
  });

  it('is not there where the settings do not say so', async () => {
    expect((await browser.visit(person())).hash).toBe('');
  });
});

describe('cookie of a sign-in under way', () => {
  it('does not count for a page of another origin', async () => {
    const jar = openCookieJar();
    issuer.behaviour = person();
    const out = await jar.fetch(`${test.url}/api/userAuth/social/acme/start?key=${project.publishable}`);
    const back = await issuer.visit(out.headers.get('location')!);
    const reply = await jar.fetch(back, { headers: { origin: 'https://evil.example' } });
    expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([400, 'SOCIAL_STATE_INVALID']);
  });

  it('counts for the browser that comes back by itself', async () => {
    expect((await browser.visit(person())).href.startsWith(HOME)).toBe(true);
  });
});
