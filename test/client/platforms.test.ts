import { createServer } from 'node:http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type Client,
  type ConnectionState,
  type SessionStorage,
  type UntypedProject,
  createClient,
} from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { eventually } from '../helpers/eventually.js';
import { listen } from '../helpers/listen.js';
import { startTcpProxy } from '../helpers/tcp-proxy.js';
import { useTestApp } from '../helpers/use.js';

const clock = createFakeClock(Date.now());

const test = await useTestApp({ clock });
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [{ name: 'text', type: 'String', required: true }],
  rls: { mode: 'private', ownerField: 'userId' },
});

const stops: (() => void)[] = [];
afterEach(() => {
  stops.splice(0).forEach((stop) => stop());
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

let made = 0;
const buildAccount = () => ({ email: `platform${++made}@example.test`, password: 'correct horse battery' });
type Api = Client<UntypedProject>;
const open = (more: Partial<Parameters<typeof createClient>[0]> = {}): Api =>
  createClient({ url: test.url, key: shop.publishable, ...more });
const refused = (): never => {
  throw new DOMException('The quota has been exceeded.', 'QuotaExceededError');
};
const denied = (): Promise<never> => Promise.reject(new DOMException('The request was denied.', 'SecurityError'));

/** Storages of platforms, each over a memory of its own; `keeps`: a later start finds the session. */
const STORAGES: Record<string, { keeps: boolean; build: (kept: Map<string, string>) => SessionStorage }> = {
  'answers at once': {
    keeps: true,
    build: (kept) => ({
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => kept.set(key, value),
      removeItem: (key) => kept.delete(key),
    }),
  },
  'answers undefined where there is nothing': {
    keeps: true,
    build: (kept) => ({
      getItem: (key) => kept.get(key),
      setItem: (key, value) => kept.set(key, value),
      removeItem: (key) => kept.delete(key),
    }),
  },
  'answers with promises': {
    keeps: true,
    build: (kept) => ({
      getItem: async (key) => kept.get(key),
      setItem: async (key, value) => void kept.set(key, value),
      removeItem: async (key) => void kept.delete(key),
    }),
  },
  'answers with slow promises, that of a short text first': {
    keeps: true,
    build: (kept) => {
      const after = (turns: number): Promise<void> =>
        turns === 0 ? Promise.resolve() : new Promise((done) => setImmediate(done)).then(() => after(turns - 1));
      return {
        getItem: async (key) => (await after(20), kept.get(key) ?? null),
        setItem: async (key, value) => (await after(value.length % 30), void kept.set(key, value)),
        removeItem: async (key) => (await after(1), void kept.delete(key)),
      };
    },
  },
  'throws when it is read': {
    keeps: false,
    build: () => ({ getItem: refused, setItem: () => undefined, removeItem: () => undefined }),
  },
  'throws when it is written': {
    keeps: false,
    build: () => ({ getItem: () => null, setItem: refused, removeItem: refused }),
  },
  'throws always': { keeps: false, build: () => ({ getItem: refused, setItem: refused, removeItem: refused }) },
  'rejects when it is read': {
    keeps: false,
    build: () => ({ getItem: denied, setItem: async () => undefined, removeItem: async () => undefined }),
  },
  'rejects when it is written': {
    keeps: false,
    build: () => ({ getItem: async () => null, setItem: denied, removeItem: denied }),
  },
};

describe.each(Object.keys(STORAGES))('a storage that %s', (kind) => {
  const { keeps, build } = STORAGES[kind]!;

  it('serves every action of an account', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const kept = new Map<string, string>();
    const account = buildAccount();
    const api = open({ storage: build(kept) });
    const told: unknown[] = [];
    stops.push(api.auth.onChange((user) => told.push(user?.email ?? null)));
    await api.auth.signUp(account);
    expect(api.auth.user?.email).toBe(account.email);
    await api.collection('notes').insert({ text: 'one' });
    await api.auth.refresh();
    await api.auth.updateProfile({ name: 'Ann' });
    expect((await api.auth.me()).name).toBe('Ann');
    clock.advance(16 * 60_000);
    expect(await api.collection('notes').count()).toBe(1);
    expect(await api.auth.token()).toBeTypeOf('string');
    await eventually('everything is stored', () => !keeps || [...kept.values()].some((text) => text.includes('Ann')));

    const later = open({ storage: build(kept) });
    await later.auth.ready;
    expect(later.auth.user?.email ?? null).toBe(keeps ? account.email : null);
    // Without waiting: a call waits for what is stored.
    const call = open({ storage: build(kept) })
      .collection('notes')
      .count();
    await (keeps ? expect(call).resolves.toBe(1) : expect(call).rejects.toMatchObject({ code: 'AUTH_REQUIRED' }));

    await api.auth.signOut();
    expect([api.auth.user, told.at(-1)]).toEqual([null, null]);
    await expect(api.collection('notes').count()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' });
    await api.auth.signIn(account);
    expect(await api.collection('notes').count()).toBe(1);
    expect(told.filter((email) => email === null)).toHaveLength(1);
  });
});

const LOCKS: Record<string, (...asked: never) => unknown> = {
  'refuse, as in a sandboxed frame': denied,
  throw: refused,
  hang: () => new Promise(() => undefined),
  'are given too late': (_name: string, _options: object, work: (lock: object) => Promise<unknown>) =>
    new Promise((resolve) => setTimeout(resolve, 60_000)).then(() => work({})),
  'refuse after a while': () => new Promise((resolve) => setImmediate(resolve)).then(refused),
};

/** Time limits of locks are over at once. */
function hurryTimers(): void {
  const set = setTimeout;
  const hurry: typeof set = ((work: () => void, ms = 0, ...rest: []) =>
    set(work, [5000, 15_000, 60_000].includes(ms) ? ms / 1000 : ms, ...rest)) as never;
  vi.stubGlobal('setTimeout', Object.assign(hurry, set));
}

it.each(Object.keys(LOCKS))('tokens are renewed, one at a time, where locks %s', async (kind) => {
  const reported = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  hurryTimers();
  vi.stubGlobal('navigator', { locks: { request: LOCKS[kind]! } });
  const paths: string[] = [];
  const api = open({
    fetch: (address, init) => {
      paths.push(new URL(String(address)).pathname);
      return fetch(address, init);
    },
  });
  await api.auth.signUp(buildAccount());
  clock.advance(16 * 60_000);
  const notes = api.collection('notes');
  expect(await Promise.all([notes.count(), notes.count(), notes.count()])).toEqual([0, 0, 0]);
  expect(paths.filter((path) => path.endsWith('/refresh-token'))).toHaveLength(1);
  // Once for all, whichever of these tests was first.
  expect(reported.mock.calls.length).toBeLessThanOrEqual(1);
});

it.each(Object.keys(LOCKS))('a follower has a stream of its own where locks %s', async (kind) => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  hurryTimers();
  const kept = new Map<string, string>();
  vi.stubGlobal('localStorage', STORAGES['answers at once']!.build(kept));
  for (const channel of [vi.fn(refused), BroadcastChannel]) {
    vi.stubGlobal('BroadcastChannel', channel);
    vi.stubGlobal('navigator', { locks: { request: LOCKS[kind]! } });
    const api = createClient({ url: test.url, key: shop.secret });
    let isShown = false;
    stops.push(api.collection('notes').follow.set({}, () => (isShown = true)));
    await eventually('it shows the list', () => isShown);
  }
});

it.each([-3_600_000, -60_000, 0, 60_000, 3_600_000])(
  'token() works at the service when the clock here is %d ms off',
  async (offMs) => {
    const real = Date.now;
    const off = (): number => clock.now() + offMs;
    vi.spyOn(Date, 'now').mockImplementation(off);
    try {
      const api = open();
      await api.auth.signUp(buildAccount());
      const works = async (): Promise<number> => {
        const headers = { 'x-api-key': shop.publishable, authorization: `Bearer ${await api.auth.token()}` };
        return (await fetch(`${test.url}/api/userAuth/me`, { headers })).status;
      };
      const first = await api.auth.token();
      expect(await api.auth.token()).toBe(first);
      clock.advance(16 * 60_000);
      expect(await works()).toBe(200);
      expect(await api.auth.token()).not.toBe(first);
    } finally {
      vi.restoreAllMocks();
      expect(Date.now).toBe(real);
    }
  },
);

describe('a query', () => {
  it('has all its filters where URLSearchParams is not what it should be', async () => {
    const seen: string[] = [];
    const { list, changes } = createClient({
      url: test.url,
      key: shop.secret,
      fetch: (address) => {
        seen.push(String(address).split('?')[1]!);
        return Promise.resolve(Response.json({ data: { items: [] } }));
      },
    }).collection('notes');
    // That of React Native ignores a text in its constructor.
    vi.stubGlobal('URLSearchParams', vi.fn());
    const filter = {
      'a b': 'x&y=z',
      n_gte: 1.5,
      at: new Date(0),
      tags: ['a,b'],
      in_in: ['ä', '😀'],
      page: 1,
      ok: true,
    };
    await list({ filter, sort: ['-n', 'a'], limit: 5 });
    await changes({ filter, since: 'now' });
    vi.unstubAllGlobals();
    const expected = [
      ['a b', 'x&y=z'],
      ['n_gte', '1.5'],
      ['at', '1970-01-01T00:00:00.000Z'],
      ...[1, 2].map(() => ['tags', 'a,b']),
      ['in_in', 'ä'],
      ['in_in', '😀'],
      ...[1, 2].map(() => ['page_in', '1']),
      ['ok', 'true'],
    ];
    expect(seen.map((query) => [...new URLSearchParams(query)].slice(0, expected.length))).toEqual([
      expected,
      expected,
    ]);
  });
});

describe('the connection', () => {
  const watch = (api: Api): ConnectionState[] => {
    const states = [api.connection.state];
    stops.push(api.connection.onChange((state) => states.push(state)));
    return states;
  };

  it('fails at once, without a request, while the browser is offline', async () => {
    vi.stubGlobal('navigator', { onLine: false });
    let asked = 0;
    const api = open({ fetch: () => (asked++, Promise.reject(new TypeError('fetch failed'))) });
    expect(api.connection.state).toBe('offline');
    for (const call of [
      () => api.collection('notes').list(),
      () => api.collection('notes').insert({ text: 'x' }),
      () => api.collection('notes').remove('a'.repeat(24)),
      () => api.auth.signIn(buildAccount()),
    ]) {
      await expect(call()).rejects.toMatchObject({ status: 0, code: 'OFFLINE' });
    }
    expect(asked).toBe(0);
  });

  it('asks a server on this machine nevertheless', async () => {
    vi.stubGlobal('navigator', { onLine: false });
    const api = open({
      url: test.url.replace('127.0.0.1', 'localhost'),
      fetch: () => Promise.resolve(Response.json({})),
    });
    await expect(api.auth.publicProfile('ann')).resolves.toEqual({});
  });

  it('says when a stream has broken off and when it is back', async () => {
    const cable = await startTcpProxy(Number(new URL(test.url).port));
    const api = createClient({ url: `http://127.0.0.1:${cable.port}`, key: shop.secret });
    const states = watch(api);
    let isShown = false;
    stops.push(api.collection('notes').follow.set({}, () => (isShown = true)));
    await eventually('it is shown', () => isShown);
    await cable.cut();
    await eventually('it connects again', () => states.at(-1) === 'connecting');
    await cable.restore();
    await eventually('it is online', () => states.at(-1) === 'online');
    stops.splice(0).forEach((stop) => stop());
    await cable.close();
    expect(states).toEqual(['online', 'connecting', 'online']);
  });

  it('ends a call after its time, whatever the platform makes of signals, and when the caller says so', async () => {
    const silent = await listen(createServer(() => undefined));
    for (const fetch of [undefined, () => new Promise<never>(() => undefined)]) {
      const api = createClient({ url: silent.url, key: shop.secret, timeout: 50, ...(fetch && { fetch }) });
      for (const call of [() => api.collection('notes').list(), () => api.collection('notes').insert({ text: 'x' })]) {
        await expect(call()).rejects.toMatchObject({ status: 0, code: 'TIMEOUT' });
      }
      const patient = createClient({ url: silent.url, key: shop.secret, timeout: Infinity, ...(fetch && { fetch }) });
      const reason = new Error('the page is gone');
      await expect(patient.collection('notes').list({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      const ends = new AbortController();
      const listed = patient.collection('notes').list({ signal: ends.signal });
      ends.abort(reason);
      await expect(listed).rejects.toBe(reason);
    }
    await silent.close();
  });

  it('leaves a call as long as it has asked the service to wait', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const fetch = (): Promise<Response> =>
        new Promise((resolve) => setTimeout(() => resolve(Response.json({ data: { items: [] } })), 900));
      const notes = createClient({ url: test.url, key: shop.secret, timeout: 100, fetch }).collection('notes');
      const calls = Promise.allSettled([notes.changes({ wait: 1 }), notes.changes()]);
      await vi.advanceTimersByTimeAsync(1000);
      expect(await calls).toMatchObject([{ value: { items: [] } }, { reason: { code: 'TIMEOUT' } }]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('createClient({ token })', () => {
  const signUp = async () => {
    const api = open();
    const user = await api.auth.signUp(buildAccount());
    await api.collection('notes').insert({ text: `of ${user._id}` });
    return { token: (await api.auth.token())!, user };
  };

  it('acts for the user of the token alone, given as a text or by a function, and keeps nothing', async () => {
    const kept = new Map<string, string>();
    vi.stubGlobal('localStorage', STORAGES['answers at once']!.build(kept));
    const [ann, bob] = [await signUp(), await signUp()];
    kept.clear();
    for (const give of [
      (token: string) => token,
      (token: string) => () => token,
      (token: string) => async () => token,
    ]) {
      const [forAnn, forBob] = [open({ token: give(ann.token) }), open({ token: give(bob.token) })];
      expect((await forAnn.collection('notes').list()).items).toMatchObject([{ text: `of ${ann.user._id}` }]);
      expect((await forBob.auth.me())._id).toBe(bob.user._id);
      expect(await forAnn.auth.token()).toBe(ann.token);
    }
    expect(kept.size).toBe(0);
    const { code } = await open({ token: ann.token })
      .auth.signIn(buildAccount())
      .catch((error: { code: string }) => error);
    expect(code).toBe('TOKEN_GIVEN');
  });

  it.each([undefined, null, '', () => undefined, async () => null])(
    'is nobody with %s, whoever is signed in elsewhere',
    async (token) => {
      vi.stubGlobal('localStorage', STORAGES['answers at once']!.build(new Map()));
      await signUp();
      const api = open({ token });
      expect(api.auth.user).toBeNull();
      await expect(api.collection('notes').list()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' });
    },
  );

  it('asks the function again when the service no longer takes the token', async () => {
    const { token, user } = await signUp();
    const tokens = ['a.b.c', token];
    const api = open({ token: () => tokens.shift() ?? token });
    expect((await api.auth.me())._id).toBe(user._id);
    await expect(open({ token: 'a.b.c' }).auth.me()).rejects.toMatchObject({ code: 'TOKEN_INVALID' });
  });

  it('tells a follower that its token is refused', async () => {
    const codes: string[] = [];
    const { follow } = open({ token: 'a.b.c' }).collection('notes');
    stops.push(follow({}, (event) => event.type === 'error' && codes.push(event.error.code)));
    await eventually('it is told', () => codes.length > 0);
    expect(codes).toEqual(['TOKEN_INVALID']);
  });
});
