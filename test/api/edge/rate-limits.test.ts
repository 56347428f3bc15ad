import { ObjectId } from 'bson';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { ROUTE_LISTS, createMonitoringApi, startServer } from '../../world/app.js';
import { setChanges } from '../../world/collections.js';
import { CALLERS, revokeKey, updateProject } from '../../world/projects.js';
import { signAccessToken, VERIFIED_TOKENS } from '../../world/users.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { buildOperator } from '../../helpers/operator-client.js';
import { openTestApp, type TestApp, type TestAppOptions } from '../../helpers/open-test-app.js';
import { hasRedis, startRedis, type RedisServer } from '../../helpers/redis-server.js';
import { openSeed } from '../../helpers/seed.js';

let test: TestApp;
let redis: RedisServer | null = null;
afterEach(async () => {
  await test.close();
  await redis?.kill();
  redis = null;
});

const start = async (settings: Record<string, string>, options: TestAppOptions = {}): Promise<void> => {
  test = await openTestApp({ ...options, settings: { BSVC_RATE_LIMIT: '5/15m', ...settings } });
};
const call = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
  fetch(`${test.url}${path}`, { method, headers });
const statuses = async (count: number, path: string, headers: Record<string, string> = {}, method = 'GET') => {
  const replies = [];
  for (let use = 0; use < count; use++) replies.push((await call(path, headers, method)).status);
  return replies;
};
const limitsOf = ({ headers }: Response): Record<string, string | null> => ({
  limit: headers.get('ratelimit-limit'),
  left: headers.get('ratelimit-remaining'),
  reset: headers.get('ratelimit-reset'),
});
const windowOf = ({ headers }: Response): string | null => headers.get('ratelimit-policy');

describe('the limit of requests per address (rest-api.md 8)', () => {
  it('stands in headers of every reply and answers 429 RATE_LIMITED with Retry-After beyond it', async () => {
    const clock = createFakeClock();
    await start({}, { clock });
    expect(limitsOf(await call('/api/data/x'))).toEqual({ limit: '5', left: '4', reset: '900' });
    expect(await statuses(4, '/api/data/x')).toEqual([401, 401, 401, 401]);
    clock.advance(60_000);
    const refused = await call('/api/data/x');
    expect(refused.status).toBe(429);
    expect(limitsOf(refused)).toEqual({ limit: '5', left: '0', reset: '840' });
    expect(refused.headers.get('retry-after')).toBe('840');
    expect(await refused.json()).toEqual({
      success: false,
      data: {},
      message: 'Too many requests: please try again later',
      error: 'Too many requests: please try again later',
      code: 'RATE_LIMITED',
      requestId: refused.headers.get('x-request-id'),
      docs: '/api/docs/guides/troubleshooting',
      details: [
        {
          field: 'BSVC_RATE_LIMIT',
          rule: 'limit',
          message:
            '5 requests of one address in 15 minutes: the server’s BSVC_RATE_LIMIT, or the project’s limit requests',
        },
      ],
    });
    clock.advance(840_000);
    expect((await call('/api/data/x')).status).toBe(401);
  });

  it('is 100 in 15 minutes unless set', async () => {
    test = await openTestApp({ settings: { BSVC_RATE_LIMIT: '', BSVC_AUTH_RATE_LIMIT: '' } });
    expect(limitsOf(await call('/api/data/x'))).toMatchObject({ limit: '100', left: '99' });
    expect(limitsOf(await call('/api/userAuth/login', {}, 'POST'))).toMatchObject({ limit: '20', left: '19' });
    expect(limitsOf(await call('/api/userAuth/refresh-token', {}, 'POST'))).toMatchObject({ limit: '60', left: '59' });
  });

  it('says in its refusal how long it counts, however short that is', async () => {
    await start({ BSVC_RATE_LIMIT: '1/10s' });
    await call('/api/data/x');
    const { details } = (await (await call('/api/data/x')).json()) as { details: [{ message: string }] };
    expect(details[0].message).toMatch(/^1 requests of one address in 10 seconds: /);
  });

  it('is gone with "off", headers included', async () => {
    await start({ BSVC_RATE_LIMIT: 'off' });
    expect(limitsOf(await call('/api/data/x'))).toEqual({ limit: null, left: null, reset: null });
  });

  it('counts all paths of an address together, unknown ones too, but not health and preflights', async () => {
    await start({});
    expect(await statuses(9, '/api/health')).not.toContain(429);
    expect(await statuses(9, '/api/health/live')).not.toContain(429);
    expect(await statuses(9, '/api/data/x', { origin: 'https://a.example' }, 'OPTIONS')).not.toContain(429);
    expect(await statuses(3, '/api/nothing')).toEqual([404, 404, 404]);
    expect(await statuses(3, '/api/storage/upload', {}, 'POST')).toEqual([401, 401, 429]);
  });

  it('lets a browser read a refusal', async () => {
    await start({ BSVC_RATE_LIMIT: '1/15m' });
    await call('/api/data/x');
    const refused = await call('/api/data/x', { origin: 'https://a.example' });
    expect(refused.status).toBe(429);
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://a.example');
    expect(refused.headers.get('access-control-expose-headers')).toContain('ratelimit-remaining');
  });

  it('reads X-Forwarded-For only behind trusted proxies, and only their own entry', async () => {
    await start({});
    for (let client = 0; client < 6; client++) await call('/api/data/x', { 'x-forwarded-for': `1.1.1.${client}` });
    expect((await call('/api/data/x', { 'x-forwarded-for': '9.9.9.9' })).status).toBe(429);
    await test.close();

    await start({ BSVC_TRUST_PROXY: '1' });
    const spoofed = (entry: number) => ({ 'x-forwarded-for': `1.1.1.${entry}, 203.0.113.7` });
    for (let entry = 0; entry < 5; entry++) await call('/api/data/x', spoofed(entry));
    expect((await call('/api/data/x', spoofed(5))).status).toBe(429);
    expect((await call('/api/data/x', { 'x-forwarded-for': '203.0.113.8' })).status).toBe(401);
  });

  it('counts an IPv6 client by its /64', async () => {
    await start({ BSVC_TRUST_PROXY: '1' });
    for (let host = 0; host < 5; host++) await call('/api/data/x', { 'x-forwarded-for': `2001:db8:0:1::${host}` });
    expect((await call('/api/data/x', { 'x-forwarded-for': '2001:db8:0:1:ffff::1' })).status).toBe(429);
    expect((await call('/api/data/x', { 'x-forwarded-for': '2001:db8:0:2::1' })).status).toBe(401);
  });
});

describe('the limits of an IPv6 network', () => {
  it.each([
    ['requests', { BSVC_RATE_LIMIT: '2/15m' }, '/api/data/x', 'GET'],
    ['sign-ins', { BSVC_RATE_LIMIT: '10000/15m', BSVC_AUTH_RATE_LIMIT: '2/15m' }, '/api/userAuth/login', 'POST'],
    ['pages', { BSVC_RATE_LIMIT: '1/15m' }, '/api/docs/guides/none', 'GET'],
  ])(
    'of %s are those of its /64, and sixteen times as much of all of its /48',
    async (what, settings, path, method) => {
      await start({ ...settings, BSVC_TRUST_PROXY: '1' });
      const each = what === 'pages' ? 10 : 2;
      const from = (network: string) => statuses(each + 1, path, { 'x-forwarded-for': `${network}::1` }, method);
      for (let network = 0; network < 16; network++) {
        const seen = await from(`2001:db8:7:${network.toString(16)}`);
        expect(seen.map((status) => status === 429)).toEqual([...Array<boolean>(each).fill(false), true]);
      }
      expect(await from('2001:db8:7:ffff')).toEqual(Array(each + 1).fill(429));
      expect((await from('2001:db8:8:1')).slice(0, each)).not.toContain(429);
      expect((await from('::ffff:192.0.2.1')).slice(0, each)).not.toContain(429);
    },
  );
});

describe('what answers everybody', () => {
  const open = ['/', '/api/openapi.json', '/api/docs', '/api/docs/guides.json', '/api/docs/guides/email', '/console/x'];
  it.each(open)('is limited as well, ten times as widely: %s', async (path) => {
    await start({ BSVC_RATE_LIMIT: '1/15m' });
    const seen = await statuses(11, path, { 'if-none-match': '*' });
    expect(seen.slice(0, 10)).not.toContain(429);
    expect(seen[10]).toBe(429);
    // Apart from the requests of applications.
    expect(await statuses(1, '/api/data/x')).toEqual([401]);
  });
});

describe('the limit of sign-ins per address', () => {
  it('counts routes that take a secret, and apart from them refreshes three times as often', async () => {
    await start({ BSVC_RATE_LIMIT: '1000/15m', BSVC_AUTH_RATE_LIMIT: '2/15m' });
    expect(await statuses(1, '/api/userAuth/login', {}, 'POST')).toEqual([401]);
    expect(await statuses(1, '/api/userAuth/signup', {}, 'POST')).toEqual([401]);
    expect(await statuses(1, '/api/userAuth/reset-password', {}, 'POST')).toEqual([429]);
    expect(await statuses(7, '/api/userAuth/refresh-token', {}, 'POST')).toEqual([401, 401, 401, 401, 401, 401, 429]);
    expect(await statuses(1, '/api/userAuth/me')).toEqual([401]);
  });

  it('holds for a secret key too, which other requests are not limited by', async () => {
    await start({ BSVC_RATE_LIMIT: '4/15m', BSVC_AUTH_RATE_LIMIT: '2/15m' });
    const { secret } = await buildProject(test.app);
    const headers = { 'x-api-key': secret };
    expect(await statuses(6, '/api/data/x', headers)).not.toContain(429);
    expect(await statuses(3, '/api/userAuth/login', headers, 'POST')).toEqual([400, 400, 429]);
  });

  it('works without the other one', async () => {
    await start({ BSVC_RATE_LIMIT: 'off', BSVC_AUTH_RATE_LIMIT: '1/15m' });
    expect(await statuses(2, '/api/userAuth/login', {}, 'POST')).toEqual([401, 429]);
    expect(limitsOf(await call('/api/data/x'))).toMatchObject({ limit: null });
  });
});

describe('limits that a project overrides', () => {
  it('hold for requests with its keys, counted for themselves', async () => {
    await start({ BSVC_RATE_LIMIT: '3/15m', BSVC_AUTH_RATE_LIMIT: '2/15m' });
    const [open, strict, usual] = [
      await buildProject(test.app),
      await buildProject(test.app),
      await buildProject(test.app),
    ];
    await updateProject(test.app, open.project.name, { limits: { requests: 50, authRequests: 6 } });
    await updateProject(test.app, strict.project.name, { limits: { requests: 1 } });
    for (const { project } of [open, strict, usual]) await buildCollection(test.app, project, { name: 'things' });
    const key = (secret: string) => ({ 'x-api-key': secret });

    expect(await statuses(3, '/api/data/things', key(usual.publishable))).toEqual([200, 200, 200]);
    expect(await statuses(1, '/api/data/things', key(usual.publishable))).toEqual([429]);
    expect(await statuses(2, '/api/data/things', key(strict.publishable))).toEqual([200, 429]);
    expect(await statuses(20, '/api/data/things', key(open.publishable))).not.toContain(429);
    expect(limitsOf(await call('/api/data/things', key(open.publishable)))).toMatchObject({ limit: '50', left: '29' });
    const logins = await statuses(7, '/api/userAuth/login', key(open.publishable), 'POST');
    expect(logins).toEqual([400, 400, 400, 400, 400, 400, 429]);
  });

  it('go by the key where its route has it, and by none where a route has none', async () => {
    await start({ BSVC_RATE_LIMIT: '4/15m' });
    const strict = await buildProject(test.app);
    await updateProject(test.app, strict.project.name, { limits: { requests: 1 } });
    const keys = `/api/userAuth/jwks.json?key=${strict.publishable}`;
    expect(await statuses(2, keys, {})).toEqual([200, 429]);
    // Elsewhere it is no key: the request is one of its address.
    expect(await statuses(1, `/api/nowhere?key=${strict.publishable}`, {})).toEqual([404]);
    const inHeader = { 'x-api-key': strict.publishable };
    expect(await statuses(4, '/api/userAuth/jwks.json', inHeader)).toEqual([401, 401, 401, 429]);
  });

  it('do not hold for keys that are no longer good', async () => {
    await start({ BSVC_RATE_LIMIT: '2/15m' });
    const { project, publishable, secret } = await buildProject(test.app);
    await updateProject(test.app, project.name, { limits: { requests: 50 } });
    for (const { id } of project.keys) await revokeKey(test.app, project, id.toHexString());
    expect(await statuses(1, '/api/data/x', { 'x-api-key': publishable })).toEqual([401]);
    expect(await statuses(2, '/api/data/x', { 'x-api-key': secret })).toEqual([401, 429]);
  });

  it('hold on from behind an address whose other requests are refused', async () => {
    await start({ BSVC_RATE_LIMIT: '2/15m' });
    const { project, publishable } = await buildProject(test.app);
    await updateProject(test.app, project.name, { limits: { requests: 50 } });
    const headers = { 'x-api-key': publishable };
    expect((await call('/api/data/x', headers)).status).toBe(404);
    await statuses(3, '/api/data/x');
    test.app.cache.forgetAll(CALLERS);
    expect((await call('/api/data/x', headers)).status).toBe(404);
  });
});

describe('what looks like a token', () => {
  it('raises no limit before it was found to be one', async () => {
    await start({ BSVC_RATE_LIMIT: '4/15m' });
    const { token } = await buildOperator(test);
    const guess = { authorization: `Bearer bsvc_op_${'x'.repeat(43)}` };
    expect(limitsOf(await call('/api/admin/me', guess))).toMatchObject({ limit: '4', left: '3' });
    expect(limitsOf(await call('/api/admin/me', { authorization: `Bearer ${token}` }))).toMatchObject({ limit: '120' });
    expect(await statuses(4, '/api/admin/me', guess)).toEqual([401, 401, 401, 429]);
  });

  it('is looked up no more for an address that is refused, unless it was good lately', async () => {
    const clock = createFakeClock();
    await start({ BSVC_RATE_LIMIT: '2/15m' }, { clock });
    const [known, late] = [await buildOperator(test), await buildOperator(test)];
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    expect(await statuses(1, '/api/admin/me', as(known.token))).toEqual([200]);
    expect(await statuses(3, '/api/admin/me', as(`bsvc_op_${'x'.repeat(43)}`))).toEqual([401, 401, 429]);
    expect(await statuses(1, '/api/admin/me', as(late.token))).toEqual([429]);
    expect(await statuses(1, '/api/admin/me', as(known.token))).toEqual([200]);
    clock.advance(15 * 60_000);
    expect(limitsOf(await call('/api/admin/me', as(late.token)))).toMatchObject({ limit: '60' });
  });

  it.each(['the service', 'a worker'])('is counted at /metrics of %s, but for the right one', async (of) => {
    const secret = 'an-admin-token-of-this-test';
    await start({ BSVC_RATE_LIMIT: '3/15m', BSVC_ADMIN_TOKEN: secret });
    if (of === 'a worker') {
      const server = await startServer(createMonitoringApi(test.app), '127.0.0.1', 0);
      const { close } = test;
      test = { ...test, url: server.url, close: () => server.stop(0).then(close) };
    }
    const right = { authorization: `Bearer ${secret}` };
    expect(limitsOf(await call('/metrics', right))).toMatchObject({ limit: '90', left: '89' });
    const [begin, end] = [secret.slice(0, 8), secret.slice(8)];
    expect(await statuses(1, '/metrics', { authorization: `${begin}Bearer ${end}` })).toEqual([401]);
    expect(await statuses(3, '/metrics', { authorization: 'Bearer wrong' })).toEqual([401, 401, 429]);
    expect((await call('/metrics', right)).status).toBe(200);
    expect((await call('/api/health/live')).status).toBe(200);
  });

  it('can be guessed at no route that is not counted', async () => {
    await start({});
    const free = ROUTE_LISTS.flatMap(({ rate, routes }) => routes.filter((route) => (route.rate ?? rate) === 'free'));
    expect(free.filter(({ access }) => access.security.length > 0).map(({ id }) => id)).toEqual([]);
  });
});

describe('a stream', () => {
  it('counts as many lists as it begins with, and once where it resumes', async () => {
    await start({ BSVC_RATE_LIMIT: '10/15m' });
    const { project, publishable } = await buildProject(test.app);
    await buildCollection(test.app, project, { name: 'things' });
    await setChanges(test.app, project._id, 'things', { on: true });
    const open = (...since: (string | undefined)[]): Promise<Response> =>
      fetch(`${test.url}/api/realtime`, {
        method: 'POST',
        headers: { 'x-api-key': publishable, 'content-type': 'application/json' },
        body: JSON.stringify({ subscriptions: since.map((position) => ({ collection: 'things', since: position })) }),
      });
    const left: (string | null | undefined)[] = [];
    for (const since of [[undefined, undefined, undefined, 'now'], ['now', 'now'], [undefined]]) {
      const reply = await open(...since);
      expect(reply.status).toBe(200);
      left.push(limitsOf(reply).left);
      await reply.body!.cancel();
    }
    // What was left before those beside the first were counted.
    expect(left).toEqual(['9', '6', '5']);
    expect((await open(...Array<undefined>(7))).status).toBe(429);
  });
});

describe('what a request counts against (decision 45)', () => {
  const signUp = async (publishable: string, email: string, from = '203.0.113.1'): Promise<Record<string, string>> => {
    const reply = await fetch(`${test.url}/api/userAuth/signup`, {
      method: 'POST',
      headers: { 'x-api-key': publishable, 'content-type': 'application/json', 'x-forwarded-for': from },
      body: JSON.stringify({ email, password: 'correct horse' }),
    });
    const { accessToken } = (await reply.json()) as { accessToken: string };
    return { 'x-api-key': publishable, authorization: `Bearer ${accessToken}` };
  };

  it('is nothing with a live secret key, and its project once that has a limit', async () => {
    await start({ BSVC_RATE_LIMIT: '2/15m' });
    const { project, secret } = await buildProject(test.app);
    await buildCollection(test.app, project, { name: 'things' });
    const headers = { 'x-api-key': secret };
    expect(new Set(await statuses(20, '/api/data/things', headers))).toEqual(new Set([200]));
    expect(limitsOf(await call('/api/data/things', headers))).toMatchObject({ limit: null });
    expect(await statuses(3, '/api/data/things')).toEqual([401, 401, 429]);
    expect(await statuses(1, '/api/data/things', headers)).toEqual([200]);
    await test.close();

    await start({ BSVC_RATE_LIMIT: 'off', BSVC_SECRET_RATE_LIMIT: '3/1m' });
    const [one, other] = [await buildProject(test.app), await buildProject(test.app)];
    const key = (value: string) => ({ 'x-api-key': value });
    expect(await statuses(4, '/api/data/x', key(one.secret))).toEqual([404, 404, 404, 429]);
    const refused = (await (await call('/api/data/x', key(one.secret))).json()) as { details: unknown };
    expect(refused.details).toEqual([
      {
        field: 'BSVC_SECRET_RATE_LIMIT',
        rule: 'limit',
        message: '3 requests with the project’s secret key in 1 minute: the server’s BSVC_SECRET_RATE_LIMIT',
      },
    ]);
    expect(await statuses(1, '/api/data/x', key(other.secret))).toEqual([404]);
    expect(await statuses(4, '/api/data/x', key(one.publishable))).not.toContain(429);
  });

  it('is the address for a token of another project or one that is not good', async () => {
    await start({ BSVC_RATE_LIMIT: '3/15m', BSVC_AUTH_RATE_LIMIT: 'off' });
    const [one, other] = [await buildProject(test.app), await buildProject(test.app)];
    const user = await signUp(one.publishable, 'ada@example.com');
    const foreign = { ...user, 'x-api-key': other.publishable };
    const broken = { ...user, authorization: `${user.authorization}x` };
    expect(await statuses(1, '/api/userAuth/me', foreign)).toEqual([401]);
    expect(await statuses(2, '/api/userAuth/me', broken)).toEqual([401, 429]);
    expect(await statuses(1, '/api/userAuth/me', user)).toEqual([200]);
  });

  it('ends in vain for a client that tries tokens: they are not checked for ever', async () => {
    await start({ BSVC_RATE_LIMIT: '1000000/15m', BSVC_AUTH_RATE_LIMIT: 'off', BSVC_TRUST_PROXY: '1' });
    const { publishable } = await buildProject(test.app);
    const user = await signUp(publishable, 'ada@example.com');
    const from = (address: string, token: string) =>
      call('/api/userAuth/me', { ...user, authorization: token, 'x-forwarded-for': address });
    const junk = `${user.authorization!.slice(0, -4)}aaaa`;
    for (let round = 0; round < 50; round++) {
      await Promise.all(Array.from({ length: 20 }, () => from('203.0.113.5', junk)));
    }
    test.app.cache.forgetAll(VERIFIED_TOKENS);
    expect(windowOf(await from('203.0.113.5', user.authorization!))).toMatch(/^"address";/);
    expect(windowOf(await from('203.0.113.6', user.authorization!))).toMatch(/^"user";/);
    // The guard has checked it since.
    expect(windowOf(await from('203.0.113.5', user.authorization!))).toMatch(/^"user";/);
  });
});

/** What a request is sent as. */
type Sender = { kind: 'stranger' } | { kind: 'junk' | 'user' | 'secret'; of: number };

describe.each(hasRedis ? (['memory', 'Redis'] as const) : (['memory'] as const))('windows counted in %s', (where) => {
  const LIMITS = { address: 4, user: 7, project: 9 };
  const USERS = 5;
  const ADDRESSES = ['203.0.113.1', '203.0.113.2', '2001:db8:1:2::3'];

  it('are met by users, strangers and servers each by their own, from whatever addresses', async () => {
    if (where === 'Redis') redis = await startRedis();
    const settings = {
      BSVC_RATE_LIMIT: `${LIMITS.address}/15m`,
      BSVC_SECRET_RATE_LIMIT: `${LIMITS.project}/15m`,
      BSVC_AUTH_RATE_LIMIT: 'off',
      BSVC_TRUST_PROXY: '1',
      ...(redis && { REDIS_URL: redis.url }),
    };
    await start(settings, { constants: { userRateLimit: { count: LIMITS.user, windowMs: 900_000 } } });
    const projects = [await buildProject(test.app), await buildProject(test.app)];
    const tokens = Array.from({ length: USERS }, (_, user) =>
      signAccessToken(test.app, projects[user % 2]!.project, new ObjectId().toHexString(), 600_000),
    );
    const counts = new Map<string, number>();
    const sent = fc.array(fc.tuple(SENDERS, fc.constantFrom(...ADDRESSES)), { minLength: 200, maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(sent, async (requests) => {
        for (const [sender, address] of requests) {
          const { headers, window, limit } = describeSender(sender, address, projects, tokens);
          const used = (counts.get(window) ?? 0) + 1;
          counts.set(window, used);
          const reply = await call('/api/data/x', { ...headers, 'x-forwarded-for': address });
          expect(`${window} ${reply.status === 429}`).toBe(`${window} ${used > LIMITS[limit]}`);
          expect(windowOf(reply)).toBe(`"${limit}";q=${LIMITS[limit]};w=900`);
          expect(limitsOf(reply).left).toBe(String(Math.max(0, LIMITS[limit] - used)));
        }
      }),
      { numRuns: 1, seed: openSeed('windows of limits') },
    );
  });

  const SENDERS: fc.Arbitrary<Sender> = fc.oneof(
    fc.constant({ kind: 'stranger' as const }),
    fc.record({ kind: fc.constant('junk' as const), of: fc.nat(USERS - 1) }),
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('user' as const), of: fc.nat(USERS - 1) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('secret' as const), of: fc.nat(1) }) },
  );

  function describeSender(
    sender: Sender,
    address: string,
    projects: readonly TestProject[],
    tokens: readonly string[],
  ): { headers: Record<string, string>; window: string; limit: keyof typeof LIMITS } {
    if (sender.kind === 'stranger') return { headers: {}, window: address, limit: 'address' };
    const { of } = sender;
    const { publishable, secret } = projects[of % 2]!;
    if (sender.kind === 'secret')
      return { headers: { 'x-api-key': secret }, window: `project ${of}`, limit: 'project' };
    const authorization = `Bearer ${tokens[of]}${sender.kind === 'junk' ? 'x' : ''}`;
    const headers = { 'x-api-key': publishable, authorization };
    return sender.kind === 'junk'
      ? { headers, window: address, limit: 'address' }
      : { headers, window: `user ${of}`, limit: 'user' };
  }
});
