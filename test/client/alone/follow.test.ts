import { createServer, request } from 'node:http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Client, type FollowEvent, type UntypedProject, createClient } from '../../world/client.js';
import { setChanges } from '../../world/collections.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { eventually } from '../../helpers/eventually.js';
import { listen, type Listening } from '../../helpers/listen.js';
import { startTcpProxy } from '../../helpers/tcp-proxy.js';
import { use, useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);
for (const name of ['posts', 'tags']) await buildCollection(test.app, shop.project, { name, mode: 'flexible' });
await buildCollection(test.app, shop.project, {
  name: 'comments',
  fields: [
    { name: 'text', type: 'String' },
    { name: 'post', type: 'Ref', ref: 'posts' },
  ],
});
await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [{ name: 'text', type: 'String', required: true }],
  rls: { mode: 'private', ownerField: 'userId' },
});
const cable = use(await startTcpProxy(Number(new URL(test.url).port)));
const writer = createClient({ url: test.url, key: shop.secret });

const stops: (() => void)[] = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

/** How a client reaches the service: by its stream; asking again and again; behind a proxy that holds streams back. */
const WAYS: readonly [string, (asked: string[]) => typeof fetch][] = [
  ['by a stream', (asked) => counting(asked, (address, init) => fetch(address, init))],
  [
    'by asking, where the service has no streams',
    (asked) =>
      counting(asked, (address, init) =>
        String(address).endsWith('/realtime')
          ? Promise.resolve(Response.json({ message: '', code: 'NOT_FOUND' }, { status: 404 }))
          : fetch(address, init),
      ),
  ],
];

function counting(asked: string[], request: typeof fetch): typeof fetch {
  return (address, init) => {
    asked.push(new URL(String(address)).pathname);
    return request(address, init);
  };
}

let made = 0;

/** A list that keeps itself, of the documents of one test. */
function keep(api: Client<UntypedProject>, collection = 'posts', of = `test ${++made}`) {
  let shown: string[] | null = null;
  stops.push(
    api.collection(collection).follow.set({ filter: { of }, sort: 'n' }, (list) => {
      shown = list.map(({ n, text }) => `${n} ${text}`);
    }),
  );
  return {
    of,
    shows: (...lines: string[]) =>
      eventually(`the list shows ${lines.join(', ')}`, () => JSON.stringify(shown) === JSON.stringify(lines)),
  };
}

describe.each(WAYS)('follow of the client %s', (by, way) => {
  const open = (asked: string[] = []) => createClient({ url: test.url, key: shop.secret, fetch: way(asked) });

  it('shows what is there, and then what each kind of write makes of it', async () => {
    const posts = writer.collection('posts');
    const first = await posts.insert({ of: `test ${made + 1}`, n: 1, text: 'there' });
    const { of, shows } = keep(open());
    await shows('1 there');
    const second = await posts.insert({ of, n: 0, text: 'new' });
    await shows('0 new', '1 there');
    await posts.update(first._id, { text: 'changed' });
    await shows('0 new', '1 changed');
    await posts.remove(first._id);
    await shows('0 new');
    await posts.update(second._id, { of: 'another' });
    await shows();
    await posts.recover(first._id);
    await shows('1 changed');
  });

  it('keeps the first documents of a sort, and takes in the next when one leaves', async () => {
    const posts = writer.collection('posts');
    const of = `test ${++made}`;
    const ids: string[] = [];
    for (const n of [1, 2, 3, 4]) ids.push((await posts.insert({ of, n }))._id);
    let shown = '';
    const options = { filter: { of }, sort: '-n', limit: 2 };
    stops.push(
      open()
        .collection('posts')
        .follow.set(options, (list) => (shown = list.map(({ n }) => n).join())),
    );
    const shows = (numbers: string) => eventually(`the list shows ${numbers}`, () => shown === numbers);
    await shows('4,3');
    await posts.insert({ of, n: 3.5 });
    await shows('4,3.5');
    await posts.remove(ids[3]!);
    await shows('3.5,3');
    await posts.update(ids[0]!, { n: 5 });
    await shows('5,3.5');
  });

  it('shows the documents that others refer to as they change', async () => {
    const [posts, comments] = [writer.collection('posts'), writer.collection('comments')];
    const post = await posts.insert({ of: 'comments', text: 'old' });
    const filter = { text: `test ${++made}` };
    await comments.insert({ ...filter, post: post._id });
    let shown: unknown;
    const show = ([first]: Record<string, unknown>[]): unknown => (shown = (first?.post as { text?: string })?.text);
    stops.push(
      open()
        .collection('comments')
        .follow.set({ filter, populate: ['post'], sort: 'post' }, show),
    );
    await eventually('the post', () => shown === 'old');
    await posts.update(post._id, { text: 'new' });
    await eventually('the post as it is now', () => shown === 'new');
  });

  it('tells several followers of a page by one request, each its own', async () => {
    const asked: string[] = [];
    const api = open(asked);
    const one = keep(api);
    const other = keep(api, 'tags');
    await one.shows();
    await other.shows();
    await writer.collection('posts').insert({ of: one.of, n: 1, text: 'post' });
    await writer.collection('tags').insert({ of: other.of, n: 1, text: 'tag' });
    await one.shows('1 post');
    await other.shows('1 tag');
    const streams = asked.filter((path) => path.endsWith('/realtime'));
    expect(streams).toHaveLength(1);
    // Otherwise the stream would be none.
    expect(asked.some((path) => path.endsWith('/changes'))).toBe(by !== 'by a stream');
  });

  it('goes on where it was when it has been away, and loses nothing', async () => {
    const api = createClient({ url: `http://127.0.0.1:${cable.port}`, key: shop.secret, fetch: way([]) });
    const posts = writer.collection('posts');
    const { of, shows } = keep(api);
    await shows();
    const gone = await posts.insert({ of, n: 1, text: 'goes' });
    await shows('1 goes');
    await cable.cut();
    await posts.remove(gone._id);
    await posts.insert({ of, n: 2, text: 'came meanwhile' });
    await cable.restore();
    await shows('2 came meanwhile');
  });

  it('starts over when the world has changed under its cursor', async () => {
    const posts = writer.collection('posts');
    const api = createClient({ url: `http://127.0.0.1:${cable.port}`, key: shop.secret, fetch: way([]) });
    const { of, shows } = keep(api);
    await posts.insert({ of, n: 1, text: 'a' });
    await shows('1 a');
    // Whoever asks while they are off is told so, for good.
    await cable.cut();
    for (const on of [false, true]) await setChanges(test.app, shop.project._id, 'posts', { on });
    await cable.restore();
    await posts.insert({ of, n: 2, text: 'b' });
    await shows('1 a', '2 b');
  });

  it('says for good what the service refuses, and tells the others on', async () => {
    const api = open();
    const events: FollowEvent<unknown>[] = [];
    stops.push(api.collection('nowhere').follow({}, (event) => events.push(event)));
    const { of, shows } = keep(api);
    await shows();
    await eventually('it is refused', () => events.some(({ type }) => type === 'error'));
    expect(events).toMatchObject([{ type: 'error', error: { status: 404, code: 'COLLECTION_NOT_FOUND' } }]);
    await writer.collection('posts').insert({ of, n: 1, text: 'still' });
    await shows('1 still');
  });

  it('tells everybody, whatever one of them throws', async () => {
    const thrown: unknown[] = [];
    const later = globalThis.queueMicrotask;
    vi.stubGlobal('queueMicrotask', (work: () => void) =>
      later(() => {
        try {
          work();
        } catch (error) {
          thrown.push(error);
        }
      }),
    );
    try {
      const api = open();
      const of = `test ${++made}`;
      const told: string[] = [];
      const fault = new Error('of the listener');
      stops.push(
        api.collection('posts').follow({ filter: { of } }, ({ type }) => {
          told.push(type);
          throw fault;
        }),
      );
      const { shows } = keep(api, 'posts', of);
      await shows();
      for (const n of [1, 2]) {
        await writer.collection('posts').insert({ of, n, text: 'post' });
        await shows(...['1 post', '2 post'].slice(0, n));
      }
      await eventually('it is told both', () => told.filter((type) => type === 'upsert').length === 2);
      expect(thrown).toContain(fault);
      expect(new Set(thrown)).toEqual(new Set([fault]));
    } finally {
      vi.unstubAllGlobals();
    }
  });

  it('shows each user their own, and forgets them when another one signs in', async () => {
    const api = createClient({ url: test.url, key: shop.publishable, fetch: way([]) });
    const enter = (name: string) =>
      api.auth.signUp({ email: `${name}${++made}@example.test`, password: 'secret word' });
    await enter('ann');
    let shown: string[] = ['nothing yet'];
    stops.push(api.collection('notes').follow.set({}, (list) => (shown = list.map(({ text }) => String(text)))));
    await api.collection('notes').insert({ text: 'of ann' });
    await eventually('ann sees her note', () => shown[0] === 'of ann');
    await enter('bob');
    await eventually('bob sees nothing', () => shown.length === 0);
    await api.collection('notes').insert({ text: 'of bob' });
    await eventually('bob sees his note', () => shown[0] === 'of bob');
  });
});

/** A proxy that hands an answer on when it has all of it: the whole of it, or its head at once and then its body. */
function startHoldingProxy(holds: 'all' | 'the body', asked: string[]): Promise<Listening> {
  const { hostname, port } = new URL(test.url);
  const server = createServer((incoming, outgoing) => {
    const { url: path, method, headers } = incoming;
    asked.push(path!.replace(/\?.*/, ''));
    const passed = request({ hostname, port, path, method, headers }, (answer) => {
      const head = (): void => void outgoing.writeHead(answer.statusCode!, answer.headers).flushHeaders();
      if (holds === 'the body') head();
      const held: Buffer[] = [];
      answer.on('data', (bytes: Buffer) => held.push(bytes));
      answer.on('end', () => {
        if (holds === 'all') head();
        outgoing.end(Buffer.concat(held));
      });
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  });
  return listen(server);
}

describe('follow of the client', () => {
  it('asks by pages where a filter has patterns, which no stream takes', async () => {
    const asked: string[] = [];
    const api = createClient({ url: test.url, key: shop.secret, fetch: WAYS[0]![1](asked) });
    const of = `test ${++made}`;
    let shown: unknown[] = [];
    stops.push(api.collection('posts').follow.set({ filter: { of, text_regex: '^a' } }, (list) => (shown = list)));
    await writer.collection('posts').insertMany([
      { of, text: 'apple' },
      { of, text: 'pear' },
    ]);
    await eventually('one matches', () => shown.length === 1);
    expect(asked.some((path) => path.endsWith('/realtime'))).toBe(false);
  });

  it('follows whatever a list can be filtered by, however many filters there are and however long', async () => {
    const asked: string[] = [];
    const api = createClient({ url: test.url, key: shop.secret, fetch: WAYS[0]![1](asked) });
    const posts = api.collection('posts');
    const of = `test ${++made}`;
    const names = Array.from({ length: 150 }, (_, n) => `${of} ${'x'.repeat(20)} ${n}`);
    const conditions = Object.fromEntries(names.slice(0, 25).map((name, n) => [`f${n}_ne`, name]));
    const filters: Record<string, unknown>[] = [
      // More than one stream takes of all together.
      ...Array.from({ length: 40 }, (_, n) => ({ of, text_in: names.slice(n, n + 60) })),
      // More than a stream takes of one.
      { of, text_in: names },
      { of, ...conditions },
      // Parameters of a stream's address, where they would be no filters.
      { of, ticket_exists: false },
      { of, ticket: 'one' },
    ];
    const shown = filters.map(() => -1);
    const errors: Error[] = [];
    for (const [n, filter] of filters.entries()) {
      const onError = (error: Error): void => void errors.push(error);
      stops.push(posts.follow.set({ filter: filter as object, onError }, (list) => (shown[n] = list.length)));
    }
    await eventually('all are shown', () => errors.length > 0 || !shown.includes(-1));
    expect(errors).toEqual([]);
    await writer.collection('posts').insert({ of, text: names[50], ticket: 'one' });
    const counts = await Promise.all(filters.map((filter) => posts.count(filter as object)));
    expect(new Set(counts)).toEqual(new Set([0, 1]));
    await eventually('each has what a list shows', () => String(shown) === String(counts));
    expect(asked.filter((path) => path.endsWith('/realtime')).length).toBeGreaterThan(1);
  });

  it('sorts by what it does not show', async () => {
    const of = `test ${++made}`;
    const posts = writer.collection('posts');
    for (const n of [2, 1, 3]) await posts.insert({ of, n, text: `${n}` });
    let shown: unknown[] = [];
    const show = (list: { text?: unknown }[]): unknown => (shown = list.map(({ text }) => text));
    stops.push(posts.follow.set({ filter: { of }, sort: 'n', fields: ['text'] }, show));
    await eventually('they are sorted', () => String(shown) === '1,2,3');
  });

  it('goes on by a stream after a pause that the service wants', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const asked: string[] = [];
      const refused = Response.json(
        { code: 'RATE_LIMITED', message: '' },
        { status: 429, headers: { 'retry-after': '60' } },
      );
      const api = createClient({
        url: test.url,
        key: shop.secret,
        fetch: counting(asked, () => (asked.length === 1 ? Promise.resolve(refused) : new Promise(() => undefined))),
      });
      const stop = api.collection('posts').follow({ since: 'now' }, () => undefined);
      await vi.advanceTimersByTimeAsync(59_000);
      expect(asked).toEqual(['/api/realtime']);
      await vi.advanceTimersByTimeAsync(5_000);
      expect(asked).toEqual(['/api/realtime', '/api/realtime']);
      stop();
    } finally {
      vi.useRealTimers();
    }
  });

  it('asks by pages behind a proxy that holds streams back', async () => {
    // Side by side: each finds out by waiting in vain for the first words of the stream.
    const proxies: Listening[] = [];
    const ways = (['all', 'the body'] as const).map(async (holds) => {
      const asked: string[] = [];
      const proxy = await startHoldingProxy(holds, asked);
      const { of, shows } = keep(createClient({ url: proxy.url, key: shop.secret }));
      await shows();
      const post = await writer.collection('posts').insert({ of, n: 1, text: 'new' });
      await shows('1 new');
      await writer.collection('posts').update(post._id, { text: 'changed' });
      await shows('1 changed');
      proxies.push(proxy);
      return asked;
    });
    for (const asked of await Promise.all(ways)) {
      expect(asked.filter((path) => path.endsWith('/realtime'))).toHaveLength(1);
      expect(asked.some((path) => path.endsWith('/changes'))).toBe(true);
    }
    stops.splice(0).forEach((stop) => stop());
    await Promise.all(proxies.map((proxy) => proxy.close()));
  });

  it('ends when it is told to: nothing is told any more, and its request is over', async () => {
    let signal: AbortSignal | null | undefined;
    const api = createClient({
      url: test.url,
      key: shop.secret,
      fetch: (address, init) => {
        signal = init?.signal;
        return fetch(address, init);
      },
    });
    const events: FollowEvent<unknown>[] = [];
    const stop = api.collection('posts').follow({ since: 'now' }, (event) => events.push(event));
    await eventually('it is ready', () => events.length > 0);
    stop();
    expect(signal?.aborted).toBe(true);
    await writer.collection('posts').insert({ of: 'ended' });
    expect(events.filter(({ type }) => type === 'upsert')).toEqual([]);
  });
});
