import { describe, expect, it } from 'vitest';
import { updateProject } from '../../world/projects.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import type { TestApp } from '../../helpers/open-test-app.js';
import { useTestApp } from '../../helpers/use.js';
import { openUserClient, type UserClient } from '../../helpers/user-client.js';

const PUBLIC = 'https://api.example.test';

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_PUBLIC_URL: PUBLIC } });
const crossSite = await useTestApp({
  settings: { BSVC_BCRYPT_COST: '4', BSVC_PUBLIC_URL: PUBLIC, BSVC_CROSS_SITE_COOKIES: 'true' },
});

interface Browser {
  project: TestProject;
  client: UserClient;
  /** The cookie of a signed-in user, as a browser sends it. */
  cookie: string;
}

async function openBrowser(at: TestApp, allowedDomains: string[]): Promise<Browser> {
  const project = await buildProject(at.app);
  await updateProject(at.app, project.project.name, { allowedDomains });
  const client = openUserClient(at, project.publishable);
  const reply = await client.signUp();
  const cookie = (reply.headers['set-cookie'] as unknown as string[])[0]!.split(';')[0]!;
  return { project, client, cookie };
}

/** Sends a request with the cookie from a page of that origin, asking for all that could be read there. */
function send({ client, cookie }: Browser, path: string, origin: string | null) {
  return client.post(path, undefined, {
    cookie,
    'x-refresh-token-mode': 'header',
    ...(origin !== null && { origin }),
  });
}

const ownHost = (at: TestApp): string => at.url;

const CASES: [string, string[], (at: TestApp) => string | null, boolean][] = [
  ['no origin', ['*'], () => null, true],
  ['the service’s public origin', ['*'], () => PUBLIC, true],
  ['the origin that the request was sent to', ['*'], ownHost, true],
  ['the same host behind TLS', ['*'], (at) => ownHost(at).replace('http:', 'https:'), true],
  ['any origin, admitted by * alone', ['*'], () => 'http://evil.example', false],
  ['the service’s host on another port', ['*'], () => 'http://127.0.0.1:1', false],
  ['an origin without a name', ['*'], () => 'null', false],
  ['an origin named beside *', ['*', 'https://app.example.com'], () => 'https://app.example.com', true],
  ['an origin not named beside *', ['*', 'https://app.example.com'], () => 'https://other.example.com', false],
  ['an origin that is named', ['https://app.example.com'], () => 'https://app.example.com', true],
  ['a host of a named domain', ['*.example.com'], () => 'https://app.example.com', true],
];

describe.each(['/refresh-token', '/logout'])('refresh cookie at %s', (path) => {
  it.each(CASES)('from %s with the allowlist %j: %#', async (_what, allowed, originOf, counts) => {
    const browser = await openBrowser(test, allowed);
    const reply = await send(browser, path, originOf(test));
    if (counts) {
      expect(reply.status).toBe(200);
      return;
    }
    expect([reply.status, (reply.body as { code: string }).code]).toEqual([401, 'COOKIE_NOT_ACCEPTED']);
    expect((reply.body as { message: string }).message).toContain(
      `bsvc project update ${browser.project.project.name} --allowed-domain`,
    );
    // Nothing happened to the session, and the page cannot take its cookie either.
    expect(reply.headers['set-cookie']).toBeUndefined();
    expect((await send(browser, '/refresh-token', null)).status).toBe(200);
  });

  it('does not count for a request of another site that names no origin', async () => {
    const browser = await openBrowser(test, ['*']);
    const { client, cookie } = browser;
    const reply = await client.post(path, undefined, { cookie, 'sec-fetch-site': 'cross-site' });
    expect([reply.status, (reply.body as { code: string }).code]).toEqual([401, 'COOKIE_NOT_ACCEPTED']);
    expect((await send(browser, '/refresh-token', null)).status).toBe(200);
  });
});

describe('refresh by cookie', () => {
  it('answers a new cookie and no refresh token that a script could read, whatever it asks for', async () => {
    const browser = await openBrowser(test, ['*']);
    const reply = await send(browser, '/refresh-token', PUBLIC);
    expect(reply.status).toBe(200);
    expect(reply.headers['x-refresh-token']).toBeUndefined();
    expect(Object.keys(reply.body as object).sort()).toEqual(['accessToken', 'expiresIn', 'success', 'token']);
    const next = (reply.headers['set-cookie'] as unknown as string[])[0]!.split(';')[0]!;
    expect(next).not.toBe(browser.cookie);
    expect((await send({ ...browser, cookie: next }, '/refresh-token', PUBLIC)).status).toBe(200);
  });

  it('takes a token in the header from any origin that the project admits', async () => {
    const browser = await openBrowser(test, ['*']);
    const token = browser.cookie.slice(browser.cookie.indexOf('=') + 1);
    const reply = await browser.client.refresh(token, { origin: 'http://other.example', cookie: browser.cookie });
    expect([reply.status, typeof reply.headers['x-refresh-token']]).toEqual([200, 'string']);
  });

  it('says why a browser sent no cookie from a page of another site', async () => {
    const { client } = await openBrowser(test, ['*']);
    const reply = await client.post('/refresh-token', undefined, {
      origin: 'http://localhost:5173',
      'sec-fetch-site': 'cross-site',
    });
    expect([reply.status, (reply.body as { code: string }).code]).toEqual([401, 'REFRESH_INVALID']);
    expect((reply.body as { message: string }).message).toContain('localhost and 127.0.0.1 are two');
  });
});

describe('cookies for other sites', () => {
  it('do not count from any other origin while the project admits *', async () => {
    const browser = await openBrowser(crossSite, ['*', 'https://app.example.com']);
    for (const origin of ['https://app.example.com', 'https://evil.example']) {
      const reply = await send(browser, '/refresh-token', origin);
      expect([reply.status, (reply.body as { code: string }).code]).toEqual([401, 'COOKIE_NOT_ACCEPTED']);
      expect((reply.body as { message: string }).message).toContain('BSVC_CROSS_SITE_COOKIES');
    }
    expect((await send(browser, '/refresh-token', PUBLIC)).status).toBe(200);
  });

  it('count from origins that the project names', async () => {
    const browser = await openBrowser(crossSite, ['https://app.example.com']);
    expect((await send(browser, '/refresh-token', 'https://app.example.com')).status).toBe(200);
  });
});
