import { createServer } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  presentSocialProvider,
  removeSocialProvider,
  setSocialProvider,
  socialProviderStore,
} from '../world/projects.js';
import { disableUser, requireUser } from '../world/users.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { listen } from '../helpers/listen.js';
import { openCookieJar, type CookieJar } from '../helpers/cookie-jar.js';
import { buildOperator } from '../helpers/operator-client.js';
import { openSocialIssuer } from '../helpers/social-issuer.js';
import { use, useTestApp } from '../helpers/use.js';
import { buildEmail, openUserClient, PASSWORD, type UserClient } from '../helpers/user-client.js';

const HOME = 'https://app.example.test/signed-in';
let project: TestProject;
let client: UserClient;
let people = 0;

const test = await useTestApp({
  settings: { BSVC_BCRYPT_COST: '4', BSVC_LOG_LEVEL: 'trace', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' },
});
const issuer = use(await openSocialIssuer());
beforeEach(async () => {
  project = await buildProject(test.app);
  client = openUserClient(test, project.publishable);
  for (const name of ['acme', 'github']) {
    await setSocialProvider(test.app, project.project, {
      name,
      issuer: issuer.url,
      clientId: issuer.clientId,
      clientSecret: issuer.clientSecret,
      redirectUrls: [HOME, 'myapp://signed-in'],
    });
  }
  issuer.clientAuthentication = null;
  issuer.behaviour = { sub: String(++people), email: buildEmail(), emailVerified: true, name: 'Ada Lovelace' };
});
afterEach(() => {
  const logged = test.logLines.join('');
  for (const secret of [issuer.clientSecret, project.publishable]) expect(logged).not.toContain(secret);
});

const start = (jar: Pick<CookieJar, 'fetch'>, provider: string, query = ''): Promise<Response> =>
  jar.fetch(`${test.url}/api/userAuth/social/${provider}/start?key=${project.publishable}${query}`);

/** All a browser does between the button and being back in the application. */
async function signIn(provider: string, jar = openCookieJar()): Promise<URL> {
  const out = await start(jar, provider);
  expect(out.status).toBe(302);
  const back = await jar.fetch(await issuer.visit(out.headers.get('location')!));
  expect(back.status).toBe(302);
  return new URL(back.headers.get('location')!);
}

interface SignedIn {
  accessToken: string;
  user: { _id: string; email: string; name: string; emailVerified: boolean };
}

async function exchange(home: URL): Promise<SignedIn> {
  const reply = await client.post('/social/exchange', { rtCode: home.searchParams.get('rtCode') });
  expect(reply.status).toBe(200);
  return reply.body as SignedIn;
}

describe.each(['acme', 'github'])('social sign-in through %s', (provider) => {
  it('creates an account and answers like a login', async () => {
    const home = await signIn(provider);
    expect(`${home.origin}${home.pathname}`).toBe(HOME);
    const reply = await client.post('/social/exchange', { rtCode: home.searchParams.get('rtCode') });
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.body as object).sort()).toEqual([
      'accessToken',
      'expiresIn',
      'refreshToken',
      'token',
      'user',
    ]);
    expect((reply.body as SignedIn).user).toMatchObject({
      email: issuer.behaviour.email,
      name: 'Ada Lovelace',
      emailVerified: true,
    });
    expect((await client.me((reply.body as SignedIn).accessToken)).status).toBe(200);
    expect((await client.refresh(reply.headers['x-refresh-token'] as string)).status).toBe(200);
  });

  it('finds the same account again, even when the person has another address there', async () => {
    const first = await exchange(await signIn(provider));
    issuer.behaviour = { ...issuer.behaviour, email: buildEmail() };
    expect((await exchange(await signIn(provider))).user).toEqual(first.user);
  });

  it('joins a confirmed account of the same address and leaves its password', async () => {
    const server = openUserClient(test, project.secret);
    const own = await server.signUp({ email: issuer.behaviour.email, emailVerified: true });
    const { user } = await exchange(await signIn(provider));
    expect(user._id).toBe((own.body as SignedIn).user._id);
    expect((await client.logIn(user.email)).status).toBe(200);
  });

  it('takes an unconfirmed account of the same address from its opener', async () => {
    const squatted = await client.signUp({ email: issuer.behaviour.email });
    const { user } = await exchange(await signIn(provider));
    expect(user).toMatchObject({ _id: (squatted.body as SignedIn).user._id, emailVerified: true });
    expect((await client.logIn(user.email, PASSWORD)).status).toBe(401);
    expect((await client.me((squatted.body as SignedIn).accessToken)).status).toBe(401);
    expect((await client.refresh(squatted.headers['x-refresh-token'] as string)).status).toBe(401);
  });

  it('creates no account for an address that the provider does not vouch for', async () => {
    issuer.behaviour.emailVerified = false;
    const home = await signIn(provider);
    expect([...home.searchParams]).toEqual([['error', 'email_unverified']]);
  });

  it('refuses a disabled account', async () => {
    const { user } = await exchange(await signIn(provider));
    await disableUser(test.app, project.project, await requireUser(test.app, project.project._id, user._id));
    expect([...(await signIn(provider)).searchParams]).toEqual([['error', 'account_disabled']]);
  });

  it('says so when the person declines or the provider fails', async () => {
    issuer.behaviour.declines = true;
    expect([...(await signIn(provider)).searchParams]).toEqual([['error', 'access_denied']]);
    issuer.behaviour = { ...issuer.behaviour, declines: false, broken: true };
    expect([...(await signIn(provider)).searchParams]).toEqual([['error', 'provider_failed']]);
  });
});

describe('what an OpenID issuer sends back', () => {
  it.each([
    ['a key it does not publish', { wrongKey: true }],
    ['another audience', { claims: { aud: 'client-2' } }],
    ['another issuer', { claims: { iss: 'https://evil.example.test' } }],
    ['another nonce', { claims: { nonce: 'other' } }],
    ['an end in the past', { claims: { exp: 1 } }],
    ['no end', { claims: { exp: undefined } }],
  ])('is refused with %s', async (_what, change) => {
    Object.assign(issuer.behaviour, change);
    expect([...(await signIn('acme')).searchParams]).toEqual([['error', 'provider_failed']]);
  });

  it.each(['client_secret_basic', 'client_secret_post'] as const)(
    'says in its discovery how it takes the secret: %s',
    async (method) => {
      issuer.clientAuthentication = method;
      expect((await exchange(await signIn('acme'))).user.email).toBe(issuer.behaviour.email);
    },
  );

  it('is logged when it refuses, in its own words', async () => {
    const { clientSecret } = issuer;
    issuer.clientSecret = 'another';
    expect([...(await signIn('acme')).searchParams]).toEqual([['error', 'provider_failed']]);
    issuer.clientSecret = clientSecret;
    expect(test.logLines.join('')).toContain('"answer":"invalid_client: the secret is not where it belongs"');
  });

  it('may lack the address, which is then asked of its userinfo', async () => {
    const { email } = issuer.behaviour;
    issuer.behaviour.claims = { email: undefined, email_verified: undefined };
    expect((await exchange(await signIn('acme'))).user.email).toBe(email);
  });
});

describe('GET /api/userAuth/social/:provider/start', () => {
  it('takes a publishable key in the query and no other', async () => {
    const at = (query: string): Promise<Response> =>
      fetch(`${test.url}/api/userAuth/social/acme/start${query}`, { redirect: 'manual' });
    expect((await at('')).status).toBe(401);
    expect((await at(`?key=${project.secret}`)).status).toBe(401);
    expect((await at(`?key=pk_live_${'A'.repeat(43)}`)).status).toBe(401);
    expect((await at(`?key=${project.publishable}&key=x`)).status).toBe(401);
    expect((await at(`?key=${project.publishable}`)).status).toBe(302);
    const elsewhere = await fetch(`${test.url}/api/userAuth/me?key=${project.publishable}`);
    expect(elsewhere.status).toBe(401);
  });

  it('sends state, nonce, PKCE and our callback, and never the key', async () => {
    const out = await start(openCookieJar(), 'acme');
    const address = new URL(out.headers.get('location')!);
    expect([...address.searchParams.keys()].sort()).toEqual([
      'client_id',
      'code_challenge',
      'code_challenge_method',
      'nonce',
      'redirect_uri',
      'response_type',
      'scope',
      'state',
    ]);
    expect(address.searchParams.get('redirect_uri')).toBe(`${test.url}/api/userAuth/social/acme/callback`);
    expect(address.href).not.toContain(project.publishable);
    expect(out.headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('sends back to listed addresses only', async () => {
    const jar = openCookieJar();
    const listed = await start(jar, 'acme', `&redirect=${encodeURIComponent('myapp://signed-in')}`);
    const back = await jar.fetch(await issuer.visit(listed.headers.get('location')!));
    expect(back.headers.get('location')).toMatch(/^myapp:\/\/signed-in\?rtCode=[\w-]{43}$/);
    for (const redirect of ['https://evil.example.test', `${HOME}/more`, `${HOME}?x=1`, '//evil.example.test', '']) {
      const reply = await start(openCookieJar(), 'acme', `&redirect=${encodeURIComponent(redirect)}`);
      expect(reply.status).toBe(400);
    }
  });

  it('sends back with an error when the provider cannot be reached', async () => {
    const of = { projectId: project.project._id, name: 'acme' };
    const { clientId, redirectUrls } = (await socialProviderStore(test.app).findOne(of))!;
    for (const [name, address] of [
      ['gone', 'http://127.0.0.1:9'],
      ['no-issuer', test.url],
    ] as const) {
      const { clientSecret } = issuer;
      await setSocialProvider(test.app, project.project, {
        name,
        issuer: address,
        clientId,
        clientSecret,
        redirectUrls,
      });
      const out = await start(openCookieJar(), name);
      expect([out.status, out.headers.get('location')]).toEqual([302, `${HOME}?error=provider_failed`]);
    }
  });

  it('answers 404 for a provider that the project does not have', async () => {
    expect((await start(openCookieJar(), 'google')).status).toBe(404);
    expect((await start(openCookieJar(), '__proto__')).status).toBe(404);
    await removeSocialProvider(test.app, project.project, 'acme');
    expect((await start(openCookieJar(), 'acme')).status).toBe(404);
  });
});

describe('GET /api/userAuth/social/:provider/callback', () => {
  it('accepts only the browser that went out, once', async () => {
    const victim = openCookieJar();
    const out = await start(openCookieJar(), 'acme');
    const callback = await issuer.visit(out.headers.get('location')!);
    const other = await victim.fetch(callback);
    expect([other.status, ((await other.json()) as { code: string }).code]).toEqual([400, 'SOCIAL_STATE_INVALID']);
    const jar = openCookieJar();
    const mine = await issuer.visit((await start(jar, 'acme')).headers.get('location')!);
    const cookies = {
      cookie: jar
        .names()
        .map((name) => `${name}=${jar.find(name)!.value}`)
        .join('; '),
    };
    expect((await fetch(mine, { redirect: 'manual', headers: cookies })).status).toBe(302);
    expect((await fetch(mine, { redirect: 'manual', headers: cookies })).status).toBe(400);
  });

  it.each(['', '?state=x&code=y', '?state[$gt]=&code=y'])('answers 400 for %j', async (query) => {
    expect((await fetch(`${test.url}/api/userAuth/social/acme/callback${query}`)).status).toBe(400);
  });

  it('lets two tabs sign in side by side', async () => {
    const jar = openCookieJar();
    const [one, two] = [await start(jar, 'acme'), await start(jar, 'acme')];
    for (const out of [two, one]) {
      const back = await jar.fetch(await issuer.visit(out.headers.get('location')!));
      expect(back.headers.get('location')).toContain('rtCode=');
    }
  });
});

describe('POST /api/userAuth/social/exchange', () => {
  it('answers the refresh token in the body, unless it is for the cookie alone', async () => {
    const code = async () => (await signIn('acme')).searchParams.get('rtCode');
    const { body, headers } = await client.post('/social/exchange', { rtCode: await code() });
    expect([typeof body.refreshToken, body.refreshToken]).toEqual(['string', headers['x-refresh-token']]);
    const mode = { 'x-refresh-token-mode': 'cookie' };
    const kept = await client.post('/social/exchange', { rtCode: await code() }, mode);
    expect([kept.status, kept.body.refreshToken, kept.headers['x-refresh-token']]).toEqual([200, undefined, undefined]);
  });

  it('accepts a code once, for its project', async () => {
    const rtCode = (await signIn('acme')).searchParams.get('rtCode');
    const other = openUserClient(test, (await buildProject(test.app)).publishable);
    expect((await other.post('/social/exchange', { rtCode })).status).toBe(401);
    const replies = await Promise.all(Array.from({ length: 5 }, () => client.post('/social/exchange', { rtCode })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401]);
  });

  it.each([
    ['nothing', {}, 400],
    ['an operator', { rtCode: { $gt: '' } }, 400],
    ['an unknown code', { rtCode: 'x' }, 401],
  ])('answers an error for %s', async (_what, body, status) => {
    expect((await client.post('/social/exchange', body)).status).toBe(status);
  });
});

describe('settings of a provider', () => {
  it('keep the secret encrypted and never show it', async () => {
    const stored = await socialProviderStore(test.app).findOne({ projectId: project.project._id, name: 'acme' });
    expect(JSON.stringify(stored)).not.toContain(issuer.clientSecret);
    expect(JSON.stringify(presentSocialProvider(stored!))).not.toMatch(/secret/i);
  });

  const good = {
    name: 'acme',
    issuer: 'https://id.example.test',
    clientId: 'c',
    clientSecret: 's',
    redirectUrls: [HOME],
  };
  it.each([
    ['a bad name', { name: 'A b' }],
    ['an unknown name without issuer', { issuer: undefined }],
    ['an issuer over plain http', { issuer: 'http://id.example.test' }],
    ['no client id', { clientId: '' }],
    ['no secret', { clientSecret: '' }],
    ['no address to return to', { redirectUrls: [] }],
    ['plain http to return to', { redirectUrls: ['http://app.example.test'] }],
    ['a script to return to', { redirectUrls: ['javascript://x'] }],
    ['a user in the address', { redirectUrls: ['https://a:b@app.example.test'] }],
    ['a line break in the address', { redirectUrls: ['https://app.example.test/\r\nx: y'] }],
    ['a letter that no header can hold', { redirectUrls: ['https://app.example.test/\u20ac'] }],
    ['an empty fragment', { redirectUrls: [`${HOME}#`] }],
    ['an app’s scheme with a fragment', { redirectUrls: ['myapp://signed-in#x'] }],
  ])('refuse %s', async (_what, change) => {
    await expect(
      setSocialProvider(test.app, project.project, { ...good, ...change } as typeof good),
    ).rejects.toMatchObject({
      code: 'INVALID_PROVIDER',
    });
  });

  it('refuse an issuer that is not public, unless private addresses are allowed', async () => {
    const guarded = await useTestApp();
    const own = (await buildProject(guarded.app)).project;
    for (const address of ['https://127.0.0.1', 'http://localhost:9', 'https://169.254.169.254', 'https://[::1]']) {
      await expect(setSocialProvider(guarded.app, own, { ...good, issuer: address })).rejects.toMatchObject({
        code: 'PRIVATE_ADDRESS',
      });
    }
  });

  it('may name a private network for an operator of all projects, not for one of this project', async () => {
    const guarded = await useTestApp();
    const { project: own, publishable } = await buildProject(guarded.app);
    const { clientId, clientSecret, url } = issuer;
    const set = ({ call }: Awaited<ReturnType<typeof buildOperator>>) =>
      call('put', `/api/projects/${own._id.toHexString()}/social/acme`, {
        issuer: url,
        clientId,
        clientSecret,
        redirectUrls: [HOME],
      });
    expect(await set(await buildOperator(guarded, 'owner', [own]))).toMatchObject({ status: 400 });
    expect(await set(await buildOperator(guarded, 'owner'))).toMatchObject({ status: 200 });
    const out = await fetch(`${guarded.url}/api/userAuth/social/acme/start?key=${publishable}`, { redirect: 'manual' });
    expect(out.headers.get('location')).toContain(`${url}/`);
  });

  it('lead to public addresses only, also when the address changes after they were set', async () => {
    const guarded = await useTestApp();
    const { project: own, publishable } = await buildProject(guarded.app);
    let asked = 0;
    const inside = await listen(createServer((_request, response) => void (asked++, response.end('{}'))));
    await setSocialProvider(guarded.app, own, { ...good, name: 'github' });
    await socialProviderStore(guarded.app).updateOne(
      { projectId: own._id },
      { $set: { issuer: inside.url, kind: 'oidc' } },
    );
    const out = await fetch(`${guarded.url}/api/userAuth/social/github/start?key=${publishable}`, {
      redirect: 'manual',
    });
    expect(out.headers.get('location')).toBe(`${HOME}?error=provider_failed`);
    expect(asked).toBe(0);
    await inside.close();
  });

  it('know google and github by name', async () => {
    const google = await setSocialProvider(test.app, project.project, {
      ...good,
      name: 'google',
      issuer: undefined,
    } as never);
    expect(presentSocialProvider(google)).toMatchObject({
      issuer: 'https://accounts.google.com',
      scopes: ['openid', 'email', 'profile'],
    });
  });
});
