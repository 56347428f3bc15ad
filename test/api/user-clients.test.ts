import { describe, expect, it } from 'vitest';
import { updateProject } from '../world/projects.js';
import { buildProject } from '../helpers/build-project.js';
import { openCookieJar, type CookieJar } from '../helpers/cookie-jar.js';
import { useTestApp } from '../helpers/use.js';
import { buildEmail, PASSWORD } from '../helpers/user-client.js';

const ORIGIN = 'https://app.example.test';

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
const project = await buildProject(test.app);
await updateProject(test.app, project.project.name, { allowedDomains: ['app.example.test'] });

type Json = Record<string, unknown>;

function call(
  jar: Pick<CookieJar, 'fetch'>,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  at = test,
): Promise<Response> {
  return jar.fetch(`${at.url}/api/userAuth${path}`, {
    method: 'POST',
    headers: { 'x-api-key': project.publishable, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

const credentials = (): { email: string; password: string } => ({ email: buildEmail(), password: PASSWORD });
const cookieName = (): string => `bsvc_rt_${project.project._id.toHexString()}`;

describe('a browser', () => {
  it('signs up, refreshes and signs out by cookie alone, never finding the refresh token', async () => {
    const jar = openCookieJar(ORIGIN);
    const mode = { 'x-refresh-token-mode': 'cookie' };
    const signedUp = await call(jar, '/signup', credentials(), mode);
    expect(signedUp.status).toBe(201);
    expect(signedUp.headers.get('x-refresh-token')).toBeNull();
    expect(await signedUp.json()).not.toHaveProperty('refreshToken');
    const cookie = jar.find(cookieName())!;
    expect(cookie.attributes).toEqual(['Path=/api/userAuth', 'Max-Age=604800', 'HttpOnly', 'SameSite=Lax']);
    const refreshed = await call(jar, '/refresh-token', undefined, mode);
    expect(refreshed.status).toBe(200);
    expect(refreshed.headers.get('x-refresh-token')).toBeNull();
    expect(jar.find(cookieName())!.value).not.toBe(cookie.value);
    expect((await call(jar, '/logout')).status).toBe(200);
    expect(jar.names()).toEqual([]);
    const after = await call(jar, '/refresh-token');
    expect([after.status, ((await after.json()) as Json)['code']]).toEqual([401, 'REFRESH_INVALID']);
  });

  it('is allowed to send credentials from an origin on the list', async () => {
    const jar = openCookieJar(ORIGIN);
    const preflight = await fetch(`${test.url}/api/userAuth/refresh-token`, {
      method: 'OPTIONS',
      headers: {
        origin: ORIGIN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,x-api-key,x-refresh-token-mode',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(preflight.headers.get('access-control-allow-credentials')).toBe('true');
    const reply = await call(jar, '/signup', credentials());
    expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(reply.headers.get('access-control-allow-credentials')).toBe('true');
    expect(reply.headers.get('vary')).toMatch(/Origin/i);
    expect(reply.headers.get('access-control-expose-headers')).toMatch(/x-refresh-token/i);
  });

  it('is refused from an origin off the list, without the headers that would let it read', async () => {
    const jar = openCookieJar('https://evil.example.test');
    const reply = await call(jar, '/login', credentials());
    expect(reply.status).toBe(403);
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
    expect(((await reply.json()) as Json)['code']).toBe('ORIGIN_NOT_ALLOWED');
  });

  it('loses its cookie when its session has ended', async () => {
    const jar = openCookieJar(ORIGIN);
    await call(jar, '/signup', credentials());
    const token = jar.find(cookieName())!.value;
    await call(openCookieJar(), '/logout', undefined, { 'x-refresh-token': token });
    expect((await call(jar, '/refresh-token')).status).toBe(401);
    expect(jar.names()).toEqual([]);
  });

  it('keeps its sessions of two projects apart', async () => {
    const jar = openCookieJar();
    const other = await buildProject(test.app);
    await call(jar, '/signup', credentials());
    await call(jar, '/signup', credentials(), { 'x-api-key': other.publishable });
    expect(jar.names()).toHaveLength(2);
    expect((await call(jar, '/refresh-token')).status).toBe(200);
    expect((await call(jar, '/refresh-token', undefined, { 'x-api-key': other.publishable })).status).toBe(200);
  });
});

describe('a client without cookies', () => {
  it('takes the refresh token from the header and sends it back there', async () => {
    const signedUp = await call({ fetch }, '/signup', credentials());
    const token = signedUp.headers.get('x-refresh-token')!;
    const refreshed = await call({ fetch }, '/refresh-token', undefined, { 'x-refresh-token': token });
    expect(refreshed.status).toBe(200);
    expect(refreshed.headers.get('x-refresh-token')).not.toBe(token);
    expect(await refreshed.json()).not.toHaveProperty('refreshToken');
  });

  it('gets it in the body, too, when it asks for that', async () => {
    const mode = { 'x-refresh-token-mode': 'header' };
    const input = credentials();
    const signedUp = await call({ fetch }, '/signup', input, mode);
    expect(((await signedUp.json()) as Json)['refreshToken']).toBe(signedUp.headers.get('x-refresh-token'));
    const loggedIn = await call({ fetch }, '/login', input, mode);
    const token = ((await loggedIn.json()) as { refreshToken: string }).refreshToken;
    const refreshed = await call({ fetch }, '/refresh-token', undefined, { ...mode, 'x-refresh-token': token });
    const body = (await refreshed.json()) as Json;
    expect(Object.keys(body).sort()).toEqual(['accessToken', 'expiresIn', 'refreshToken', 'success', 'token']);
    expect(body['refreshToken']).toBe(refreshed.headers.get('x-refresh-token'));
  });

  it('counts by its header, not by its cookie', async () => {
    const jar = openCookieJar();
    await call(jar, '/signup', credentials());
    const cookie = jar.find(cookieName())!.value;
    const other = (await call({ fetch }, '/signup', credentials())).headers.get('x-refresh-token')!;
    const refreshed = await call(jar, '/refresh-token', undefined, { 'x-refresh-token': other });
    expect(refreshed.headers.get('x-refresh-token')!.split('.')[0]).toBe(other.split('.')[0]);
    const wrong = await call({ fetch }, '/refresh-token', undefined, {
      'x-refresh-token': 'x',
      cookie: `${cookieName()}=${cookie}`,
    });
    expect(wrong.status).toBe(401);
  });
});

describe('the refresh cookie', () => {
  it.each([
    ['behind TLS', { BSVC_PUBLIC_URL: 'https://api.example.test' }, ['SameSite=Lax', 'Secure']],
    [
      'behind TLS for other sites',
      { BSVC_PUBLIC_URL: 'https://api.example.test', BSVC_CROSS_SITE_COOKIES: 'true' },
      ['SameSite=None', 'Secure'],
    ],
    ['for other sites without TLS', { BSVC_CROSS_SITE_COOKIES: 'true' }, ['SameSite=Lax']],
  ])('%s is set as browsers want it', async (_what, settings, attributes) => {
    const own = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', ...settings } });
    const { publishable, project: owner } = await buildProject(own.app);
    const jar = openCookieJar();
    await call(jar, '/signup', credentials(), { 'x-api-key': publishable }, own);
    const cookie = jar.find(`bsvc_rt_${owner._id.toHexString()}`)!;
    expect(cookie.attributes).toEqual(['Path=/api/userAuth', 'Max-Age=604800', 'HttpOnly', ...attributes]);
  });

  it('and the reply follow the settings of lifetimes', async () => {
    const settings = { BSVC_BCRYPT_COST: '4', BSVC_ACCESS_TOKEN_TTL: '90s', BSVC_REFRESH_TOKEN_TTL: '2h' };
    const own = await useTestApp({ settings });
    const { publishable } = await buildProject(own.app);
    const reply = await call({ fetch }, '/signup', credentials(), { 'x-api-key': publishable }, own);
    expect(((await reply.json()) as Json)['expiresIn']).toBe('90s');
    expect(reply.headers.getSetCookie()[0]).toContain('Max-Age=7200');
  });
});
