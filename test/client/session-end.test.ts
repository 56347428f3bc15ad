import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Client, type FollowEvent, type UntypedProject, createClient } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { eventually } from '../helpers/eventually.js';
import { useTestApp } from '../helpers/use.js';

const clock = createFakeClock(Date.now());

const test = await useTestApp({ clock });
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [{ name: 'text', type: 'String', required: true }],
  rls: { mode: 'private', ownerField: 'userId' },
});
await buildCollection(test.app, shop.project, {
  name: 'news',
  mode: 'flexible',
  rls: { mode: 'public-read', ownerField: 'userId' },
});

const stops: (() => void)[] = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

let made = 0;
const password = 'correct horse battery';
const buildAccount = () => ({ email: `ends${++made}@example.test`, password });
type Api = Client<UntypedProject>;
const open = (fetch?: typeof globalThis.fetch): Api =>
  createClient({ url: test.url, key: shop.publishable, ...(fetch && { fetch }) });

/** What is told of sign-in and sign-out. */
function watch(api: Api): unknown[] {
  const told: unknown[] = [];
  stops.push(api.auth.onChange((user, reason) => told.push(user ? user.email : [null, reason])));
  return told;
}

const ID = 'a'.repeat(24);
const CALLS: Record<string, (api: Api) => Promise<unknown>> = {
  list: (api) => api.collection('notes').list(),
  get: (api) => api.collection('notes').get(ID),
  count: (api) => api.collection('notes').count(),
  insert: (api) => api.collection('notes').insert({ text: 'x' }),
  insertMany: (api) => api.collection('notes').insertMany([{ text: 'x' }]),
  update: (api) => api.collection('notes').update(ID, { text: 'x' }),
  remove: (api) => api.collection('notes').remove(ID),
  recover: (api) => api.collection('notes').recover(ID),
  changes: (api) => api.collection('notes').changes(),
  batch: (api) => api.batch((batch) => batch.collection('notes').insert({ text: 'x' })),
  me: (api) => api.auth.me(),
  updateProfile: (api) => api.auth.updateProfile({ name: 'Ann' }),
  sessions: (api) => api.auth.sessions.list(),
  identities: (api) => api.auth.identities.list(),
};

/** How a session ends without its client. */
const ENDS: Record<string, (other: Api) => Promise<unknown>> = {
  'its user ends the others': (other) => other.auth.sessions.end('others'),
  'its user changes the password': (other) =>
    other.auth.changePassword({ currentPassword: password, newPassword: 'another password' }),
  'its user deletes the account': (other) => other.auth.deleteAccount({ currentPassword: password }),
};

describe.each(Object.keys(ENDS))('when %s elsewhere', (end) => {
  it('every call that needs the user is refused with 401, signs out and says so once', async () => {
    const calls = Object.entries(CALLS);
    const account = buildAccount();
    const apis = await Promise.all(
      calls.map(async (_, n) => {
        const api = open();
        // One after the other: an account is made once.
        if (n === 0) await api.auth.signUp(account);
        return api;
      }),
    );
    for (const api of apis.slice(1)) await api.auth.signIn(account);
    const told = apis.map(watch);
    const other = open();
    await other.auth.signIn(account);
    await ENDS[end]!(other);
    for (const [n, [name, call]] of calls.entries()) {
      const again = await Promise.allSettled([call(apis[n]!), call(apis[n]!)]);
      for (const each of again) expect(each, name).toMatchObject({ status: 'rejected', reason: { status: 401 } });
      expect([name, apis[n]!.auth.user, told[n]]).toEqual([name, null, [[null, 'ended']]]);
    }
  });

  it('a follower pauses, and goes on with the next sign-in', async () => {
    const account = buildAccount();
    const api = open();
    await api.auth.signUp(account);
    await api.collection('notes').insert({ text: 'mine' });
    const told = watch(api);
    const events: FollowEvent<unknown>[] = [];
    let shown: unknown[] | null = null;
    stops.push(api.collection('notes').follow({}, (event) => events.push(event)));
    stops.push(api.collection('notes').follow.set({}, (list) => (shown = list)));
    await eventually('it shows the note', () => shown?.length === 1);
    const other = open();
    await other.auth.signIn(account);
    await ENDS[end]!(other);
    clock.advance(16 * 60_000);
    await api.auth.me().catch(() => undefined);
    await eventually('it is signed out', () => told.length === 1);
    expect(shown).toEqual([]);
    await api.auth.signUp(buildAccount());
    await api.collection('notes').insert({ text: 'of the next user' });
    await eventually('it shows the note of the next user', () => shown?.length === 1);
    expect(events.filter(({ type }) => type === 'error')).toEqual([]);
  });
});

describe('a refusal with 401', () => {
  const CODES = ['TOKEN_INVALID', 'TOKEN_EXPIRED', 'AUTH_REQUIRED', 'API_KEY_INVALID', 'INVALID_CREDENTIALS', 'OTHER'];

  it.each(CODES)('%s of one call does not sign out a session that the service still renews', async (code) => {
    let isRefusing = false;
    const api = open((address, init) =>
      isRefusing && !String(address).endsWith('/refresh-token')
        ? Promise.resolve(Response.json({ code, message: '' }, { status: 401 }))
        : fetch(address, init),
    );
    await api.auth.signUp(buildAccount());
    const told = watch(api);
    isRefusing = true;
    await expect(api.collection('notes').list()).rejects.toMatchObject({ status: 401, code });
    // Not even a renewed token is accepted: the session is over whatever the renewal says.
    const ended = code === 'TOKEN_INVALID';
    expect([api.auth.user === null, told]).toEqual([ended, ended ? [[null, 'ended']] : []]);
  });

  it.each(['REFRESH_INVALID', 'REFRESH_REUSED', 'TOKEN_INVALID', 'API_KEY_INVALID', 'COOKIE_NOT_ACCEPTED', 'OTHER'])(
    '%s of a renewal signs out if the session is over',
    async (code) => {
      const api = open((address, init) =>
        String(address).endsWith('/refresh-token')
          ? Promise.resolve(Response.json({ code, message: '' }, { status: 401 }))
          : fetch(address, init),
      );
      await api.auth.signUp(buildAccount());
      const told = watch(api);
      clock.advance(16 * 60_000);
      await expect(api.collection('notes').list()).rejects.toMatchObject({ status: 401 });
      const ended = /^(REFRESH|TOKEN)_/.test(code);
      expect([api.auth.user === null, told]).toEqual([ended, ended ? [[null, 'ended']] : []]);
    },
  );
});

describe('auth.user', () => {
  it('is the same object until it changes, and every change is reported', async () => {
    const api = open();
    const told: unknown[] = [];
    stops.push(api.auth.onChange((user) => told.push(user)));
    expect(api.auth.user).toBeNull();
    await api.auth.signUp(buildAccount());
    const first = api.auth.user;
    await api.auth.refresh();
    await api.auth.me();
    await api.auth.refresh();
    const same = api.auth.user;
    await api.auth.me();
    expect(api.auth.user).toBe(same);
    await api.auth.updateProfile({ name: 'Ann' });
    expect(api.auth.user).toMatchObject({ name: 'Ann' });
    expect(told.at(-1)).toBe(api.auth.user);
    expect(new Set(told).size).toBe(told.length);
    expect(told).toContain(first);
    await api.auth.signOut();
    await api.auth.signOut();
    expect(told.filter((user) => user === null)).toHaveLength(1);
  });
});

describe('followers', () => {
  /** Streams that were asked for, with the number of their subscriptions. */
  function counting(): { api: Api; streams: number[] } {
    const streams: number[] = [];
    const api = open((address, init) => {
      if (String(address).endsWith('/realtime')) {
        streams.push((JSON.parse(String(init!.body)) as { subscriptions: unknown[] }).subscriptions.length);
      }
      return fetch(address, init);
    });
    return { api, streams };
  }

  it('begun before the sign-in wait for it, pause with the sign-out and go on, without an error', async () => {
    const { api } = counting();
    const notes: string[] = [];
    const news: string[] = [];
    stops.push(api.collection('notes').follow({}, ({ type }) => notes.push(type)));
    stops.push(api.collection('news').follow({}, ({ type }) => news.push(type)));
    await eventually('what is public is followed', () => news.includes('ready'));
    for (const round of [1, 2]) {
      const account = buildAccount();
      await api.auth.signUp(account);
      await api.collection('notes').insert({ text: `round ${round}` });
      await eventually('the note arrives', () => notes.filter((type) => type === 'upsert').length === round);
      const before = news.length;
      await api.auth.signOut();
      await eventually('what is public goes on', () => news.slice(before).includes('ready'));
    }
    expect([...notes, ...news]).not.toContain('error');
  });

  it('do not reopen the streams of others that began before, nor are told ready again', async () => {
    const { api, streams } = counting();
    await api.auth.signUp(buildAccount());
    const ready: number[] = [];
    const follow = async (n: number): Promise<() => void> => {
      ready[n] = 0;
      const stop = api.collection(n % 2 ? 'notes' : 'news').follow({}, ({ type }) => type === 'ready' && ready[n]!++);
      stops.push(stop);
      await eventually(`follower ${n} is ready`, () => ready[n]! > 0);
      return stop;
    };
    await follow(0);
    await follow(1);
    const third = await follow(2);
    expect(streams).toEqual([1, 1, 1]);
    third();
    await follow(3);
    expect(streams).toEqual([1, 1, 1, 1]);
    // No more than three streams: the latest is asked for again, with the newcomers.
    for (const n of [4, 5, 6]) await follow(n);
    expect(streams).toEqual([1, 1, 1, 1, 2, 3, 4]);
    await api.collection('notes').insert({ text: 'for all' });
    await eventually('those of notes are ready again', () => [1, 3, 5].every((n) => ready[n] === 2));
    expect([0, 2, 4, 6].map((n) => ready[n])).toEqual([1, 1, 1, 1]);
  });

  it('say at once what there is where the platform holds answers back until they are whole', async () => {
    let isAsked = false;
    const holding: typeof fetch = async (address, init) => {
      isAsked ||= String(address).endsWith('/realtime');
      const response = await fetch(address, init);
      return new Response(await response.text(), response);
    };
    const api = open(holding);
    await api.auth.signUp(buildAccount());
    await api.collection('notes').insert({ text: 'there' });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const until = async (check: () => boolean, eachMs: number): Promise<void> => {
        while (!check()) {
          await vi.advanceTimersByTimeAsync(eachMs);
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      let isShown = false;
      stops.push(api.collection('notes').follow.set({}, () => (isShown = true)));
      await until(() => isAsked, 5);
      // The stream would be given up after ten seconds, which do not come here.
      await vi.advanceTimersByTimeAsync(2_000);
      await until(() => isShown, 0);
    } finally {
      vi.useRealTimers();
    }
  });
});
