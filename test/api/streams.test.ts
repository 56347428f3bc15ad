import { connect as connectTo } from 'node:net';
import { ObjectId } from 'bson';
import supertest from 'supertest';
import { afterAll, describe, expect, it } from 'vitest';
import { type Collection, setChanges, setRls } from '../world/collections.js';
import { purgeTrash, trashDocument } from '../world/documents.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { idIn, openDataClient, serverOf, type DataClient, userOf } from '../helpers/data-client.js';
import { openStreamClient, type StreamCall, type StreamClient } from '../helpers/event-stream.js';
import { eventually } from '../helpers/eventually.js';
import { useTestApp } from '../helpers/use.js';

const USER = new ObjectId().toHexString();
const ANOTHER = new ObjectId().toHexString();
const FIELDS = [
  { name: 'title', type: 'String' as const },
  { name: 'n', type: 'Number' as const },
  { name: 'userId', type: 'String' as const },
];
const PRIVATE = { mode: 'private' as const, ownerField: 'userId' };

let made = 0;
const open: StreamClient[] = [];

const test = await useTestApp();
const owner = await buildProject(test.app);
afterAll(async () => {
  for (const client of open) client.close();
});

const secret = () => serverOf(owner);
const server = openDataClient(test, secret);
const signedIn = (userId: string, ms = 60_000) => userOf(test, owner, userId, ms);

async function buildFollowed(rls: Collection['rls'] = null): Promise<Collection> {
  const collection = await buildCollection(test.app, owner.project, { name: `streamed${++made}`, fields: FIELDS, rls });
  return setChanges(test.app, owner.project._id, collection.name, { on: true });
}

const send = (...request: Parameters<DataClient>): Promise<string> => idIn(server(...request));

async function connect(call: StreamCall): Promise<StreamClient> {
  const client = await openStreamClient(test, call);
  open.push(client);
  return client;
}

const follow = (subscriptions: object[], headers: Record<string, string> = secret()) =>
  connect({ headers, body: { subscriptions } });

const isReady = ({ event }: { event: string }): boolean => event === 'ready';

/** What a client is told between two moments in which it has what a list shows. */
async function newsBy(client: StreamClient, write: () => Promise<unknown>, n = 0): Promise<string[]> {
  await client.until(isReady);
  const from = client.events.length;
  await write();
  // On a MongoDB what was told before may be told again, by itself.
  const news = () => client.events.slice(from).filter(({ isNews, data }) => isNews && data.n === n);
  await client.until(({ event, data }) => event === 'ready' && data.n === n && news().length > 0, from);
  return news().map(({ data }) => (data.type === 'gone' ? `${data.id} gone` : data.id!));
}

describe('POST /api/realtime', () => {
  it('shows what is there, then what every kind of write makes of it', async () => {
    const { name } = await buildFollowed();
    const first = await send('post', name, { title: 'first' });
    const client = await follow([{ collection: name }]);
    expect(client.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    await client.until(isReady);
    expect([...client.known().keys()]).toEqual([first]);
    expect(await newsBy(client, () => send('patch', `${name}/${first}`, { n: 1 }))).toEqual([first]);
    expect(await newsBy(client, () => send('put', `${name}/${first}`, { title: 'new' }))).toEqual([first]);
    // On a MongoDB each gets into the log by itself.
    await newsBy(client, () => send('post', `${name}/bulk`, [{ n: 2 }, { n: 3 }]));
    await eventually('both are told of', () => client.known().size === 3);
    expect(await newsBy(client, () => send('delete', `${name}/${first}`))).toEqual([`${first} gone`]);
    expect(await newsBy(client, () => send('patch', `${name}/${first}/recover`))).toEqual([first]);
    expect(await newsBy(client, () => send('delete', `${name}/${first}?permanent=true`))).toEqual([`${first} gone`]);
    expect(client.known().size).toBe(2);
    expect(client.text()).not.toContain('_bsvc');
  });

  it('carries several subscriptions, each with the position that it had in the request', async () => {
    const { name } = await buildFollowed();
    const id = await send('post', name, { title: 'open', n: 1 });
    const client = await follow([
      { collection: name, filter: 'title=open', fields: ['title'] },
      { collection: name, filter: 'title=done' },
    ]);
    await client.until(({ event, data }) => event === 'ready' && data.n === 0);
    await client.until(({ event, data }) => event === 'ready' && data.n === 1);
    expect(client.known(0).get(id)).toMatchObject({ _id: id, title: 'open' });
    expect(client.known(0).get(id)).not.toHaveProperty('n');
    const from = client.events.length;
    await send('patch', `${name}/${id}`, { title: 'done' });
    await client.until(({ event, data }) => event === 'ready' && data.n === 0, from);
    await client.until(({ event, data }) => event === 'ready' && data.n === 1, from);
    expect(client.known(0).size).toBe(0);
    expect(client.known(1).get(id)).toMatchObject({ title: 'done', n: 1 });
  });

  it('takes a beginning as its filter', async () => {
    const { name } = await buildFollowed();
    const client = await follow([{ collection: name, filter: 'title_startswith=Op' }]);
    await client.until(isReady);
    await send('post', name, { title: 'open' });
    let id = '';
    await newsBy(client, async () => (id = await send('post', name, { title: 'Open' })));
    expect([...client.known().keys()]).toEqual([id]);
    expect(await newsBy(client, () => send('patch', `${name}/${id}`, { title: 'Done' }))).toEqual([`${id} gone`]);
  });

  it('takes an object as its filter, of the same meaning as the text', async () => {
    const { name } = await buildFollowed();
    const client = await follow([
      { collection: name, filter: { title_in: ['a, b', 'c&d'], n_gt: 3 } },
      { collection: name, filter: { title: 'c&d', or: [{ n: 1 }, { n: 5 }] } },
      { collection: name, filter: {} },
    ]);
    for (const n of [0, 1, 2]) await client.until((event) => isReady(event) && event.data.n === n);
    const ids: string[] = [];
    for (const document of [
      { title: 'a, b', n: 4 },
      { title: 'c&d', n: 5 },
      { title: 'c&d', n: 1 },
      { title: 'b', n: 4 },
    ]) {
      ids.push(await send('post', name, document));
      await eventually('all are told', () => client.known(2).size === ids.length);
    }
    expect([0, 1].map((n) => [...client.known(n).keys()].map((id) => ids.indexOf(id)).sort())).toEqual([
      [0, 1],
      [1, 2],
    ]);
  });

  it('takes alternatives as its filter, within the bounds of live filters', async () => {
    const { name } = await buildFollowed();
    const filter = (or: object[]): string => `or=${encodeURIComponent(JSON.stringify(or))}`;
    const client = await follow([{ collection: name, filter: filter([{ title: 'open' }, { n_gt: 3 }]) }]);
    await client.until(isReady);
    await send('post', name, { title: 'done', n: 1 });
    let id = '';
    await newsBy(client, async () => (id = await send('post', name, { title: 'done', n: 4 })));
    expect([...client.known().keys()]).toEqual([id]);
    expect(await newsBy(client, () => send('patch', `${name}/${id}`, { title: 'open', n: 0 }))).toEqual([id]);
    expect(await newsBy(client, () => send('patch', `${name}/${id}`, { title: 'Done' }))).toEqual([`${id} gone`]);
    for (const [said, or] of [
      ['at most 20 conditions', Array.from({ length: 11 }, () => ({ title: 'a', n: 1 }))],
      ['may not use _regex', [{ title: 'a' }, { title_regex: 'a' }]],
      ['at most 100 values', [{ n_in: Array.from({ length: 101 }, (_, n) => n) }]],
    ] as const) {
      const refused = await follow([{ collection: name, filter: filter([...or]) }]);
      expect([refused.status, refused.text()]).toEqual([400, expect.stringContaining(said)]);
    }
  });

  it('is refused with the position of the subscription that is to blame', async () => {
    const { name } = await buildFollowed();
    const off = await buildFollowed();
    await setChanges(test.app, owner.project._id, off.name, { on: false });
    const refused: [string, object][] = [
      ['404 COLLECTION_NOT_FOUND', { collection: 'nowhere' }],
      ['409 CHANGES_OFF', { collection: off.name }],
      ['400 INVALID_CURSOR', { collection: name, since: 'x' }],
      ...['nothing=1', 'since=x', 'fields=n', 'limit=1', 'wait=1', 'page=1', 'n=%', 'title_regex=a'].map(
        (filter): [string, object] => ['400 INVALID_QUERY', { collection: name, filter }],
      ),
      ...[
        { nothing: 1 },
        { since: 'x' },
        { n: { $gt: 1 } },
        { n_in: [] },
        { '\ud800': 1 },
        { or: [1] },
        { n: '\ud800' },
      ].map((filter): [string, object] => ['400 INVALID_QUERY', { collection: name, filter }]),
      ['400 VALIDATION_FAILED', { collection: name, filter: ['title'] }],
      ['400 INVALID_QUERY', { collection: name, fields: ['nothing'] }],
      ['400 VALIDATION_FAILED', { collection: name, filter: `title=${'x'.repeat(8192)}` }],
    ];
    for (const [refusal, subscription] of refused) {
      const { status, body } = await follow([{ collection: name }, subscription]);
      const blamed = body.details?.[0]?.field ?? '';
      expect([`${status} ${body.code}`, blamed], JSON.stringify(subscription).slice(0, 80)).toEqual([
        refusal,
        expect.stringMatching(/^subscriptions\.1/),
      ]);
    }
  });

  it('goes on where another stream was cut off, and misses nothing that happened between', async () => {
    const { name } = await buildFollowed();
    const kept = await send('post', name, { title: 'kept' });
    const gone = await send('post', name, { title: 'gone' });
    const first = await follow([{ collection: name }]);
    await first.until(isReady);
    first.close();
    await first.ended;
    await send('delete', `${name}/${gone}`);
    const added = await send('post', name, { title: 'added' });
    const second = await follow([{ collection: name, since: first.cursor()! }]);
    await second.until(isReady);
    const told = second.events.filter(({ event }) => event === 'change').map(({ data }) => `${data.type} ${data.id}`);
    expect(told).toEqual([`gone ${gone}`, `upsert ${added}`]);
    expect(second.text()).not.toContain(kept);
  });

  it('begins with what comes when it is asked for changes since now', async () => {
    const { name } = await buildFollowed();
    await send('post', name, { title: 'before' });
    const client = await follow([{ collection: name, since: 'now' }]);
    const ids: string[] = [];
    const news = await newsBy(client, async () => ids.push(await send('post', name, { title: 'after' })));
    expect(news).toEqual(ids);
    expect(client.known().size).toBe(1);
  });

  it('tells users of their own documents alone, departures and removals included', async () => {
    const { name } = await buildFollowed(PRIVATE);
    const mine = await send('post', name, { title: 'mine', userId: USER });
    const theirs = await send('post', name, { title: 'theirs', userId: ANOTHER });
    const me = await follow([{ collection: name }], signedIn(USER));
    const them = await follow([{ collection: name }], signedIn(ANOTHER));
    await Promise.all([me.until(isReady), them.until(isReady)]);
    for (const id of [mine, theirs]) await send('patch', `${name}/${id}`, { n: 1 });
    await send('delete', `${name}/${mine}`);
    await send('delete', `${name}/${theirs}?permanent=true`);
    await me.until(({ data }) => data.type === 'gone' && data.id === mine);
    await them.until(({ data }) => data.type === 'gone' && data.id === theirs);
    expect(me.text()).not.toContain(theirs);
    expect(me.text()).not.toContain(ANOTHER);
    expect(them.text()).not.toContain(mine);
    expect(them.text()).not.toContain(USER);
  });

  it('starts a follower over when the rules of its collection change, under the new ones', async () => {
    const { name } = await buildFollowed();
    const mine = await send('post', name, { userId: USER });
    await send('post', name, { userId: ANOTHER });
    const client = await follow([{ collection: name }], signedIn(USER));
    await client.until(isReady);
    expect(client.known().size).toBe(2);
    const before = client.cursor()!;
    const from = client.events.length;
    await setRls(test.app, owner.project._id, name, PRIVATE);
    await client.until(({ event }) => event === 'reset', from);
    await client.until(isReady, from);
    expect([...client.known().keys()]).toEqual([mine]);
    // The same for somebody who was away meanwhile.
    const late = await follow([{ collection: name, since: before }], signedIn(USER));
    await late.until(isReady);
    expect(late.events[0]).toMatchObject({ event: 'reset', data: { n: 0, code: 'CURSOR_EXPIRED' } });
    expect([...late.known().keys()]).toEqual([mine]);
  });

  it('ends with a reason when what it follows can be followed no longer', async () => {
    const { name } = await buildFollowed();
    const client = await follow([{ collection: name }]);
    await client.until(isReady);
    await setChanges(test.app, owner.project._id, name, { on: false });
    await client.ended;
    expect(client.events.at(-1)).toMatchObject({ event: 'end', data: { n: 0, code: 'CHANGES_OFF' } });
  });
});

describe('a stream hears of documents that are removed for good', () => {
  /** On a MongoDB what is shown may be shown twice; what is gone is told once everywhere. */
  const told = (client: StreamClient): string[] =>
    client.events
      .filter(({ event, data, isNews }) => event === 'change' && (isNews || data.type === 'gone'))
      .map(({ data }) => `${data.type} ${data.id}`);

  /** Moves the moment back at which a document was trashed, as if the days of the trash were over. */
  const age = (collection: Collection, id: string) =>
    storedDocuments(test.app, collection).updateOne({ _id: new ObjectId(id) }, { $set: { deletedAt: new Date(0) } });

  it('once, when they are trashed: not again when the trash is purged or what lies in it is deleted', async () => {
    const collection = await buildFollowed(PRIVATE);
    const { name } = collection;
    const [purged, deleted] = [await send('post', name, { userId: USER }), await send('post', name, { userId: USER })];
    const client = await follow([{ collection: name }], signedIn(USER));
    const another = await follow([{ collection: name }], signedIn(ANOTHER));
    await Promise.all([client.until(isReady), another.until(isReady)]);
    for (const id of [purged, deleted]) {
      expect(await newsBy(client, () => send('delete', `${name}/${id}`))).toEqual([`${id} gone`]);
    }
    await age(collection, purged);
    expect(await purgeTrash(test.app)).toBe(1);
    await send('delete', `${name}/${deleted}?permanent=true`);
    // What comes after it shows that nothing was said of it.
    const last = await send('post', name, { userId: USER });
    await client.until(({ data }) => data.id === last);
    expect(told(client)).toEqual([
      ...[purged, deleted, purged, deleted].map((id, at) => `${at < 2 ? 'upsert' : 'gone'} ${id}`),
      `upsert ${last}`,
    ]);
    expect(told(another)).toEqual([]);
  });

  it('when they were trashed and purged while the client was away', async () => {
    const collection = await buildFollowed(PRIVATE);
    const { name } = collection;
    const [mine, theirs] = [await send('post', name, { userId: USER }), await send('post', name, { userId: ANOTHER })];
    const before = await follow([{ collection: name }], signedIn(USER));
    await before.until(isReady);
    before.close();
    await before.ended;
    for (const id of [mine, theirs]) {
      await send('delete', `${name}/${id}`);
      await age(collection, id);
    }
    await eventually('both are purged', async () => {
      await purgeTrash(test.app);
      return (await storedDocuments(test.app, collection).countDocuments({})) === 0;
    });
    const again = await follow([{ collection: name, since: before.cursor()! }], signedIn(USER));
    await again.until(isReady);
    expect(told(again)).toEqual([`gone ${mine}`]);
    expect(again.text()).not.toContain(theirs);
  });

  it('also when the trash is purged before anybody told of what a killed process had trashed', async () => {
    const collection = await buildFollowed();
    const id = await send('post', collection.name, {});
    const client = await follow([{ collection: collection.name }]);
    await client.until(isReady);
    // A process writes this and is killed before it tells anybody.
    const { hints } = test.app;
    const killed = { ...test.app, hints: Object.create(hints, { tell: { value: () => undefined } }) as typeof hints };
    await trashDocument(killed, { collection, writer: null }, id);
    await age(collection, id);
    await purgeTrash(test.app);
    expect(await storedDocuments(test.app, collection).countDocuments({})).toBe(0);
    await client.until(({ data }) => data.type === 'gone' && data.id === id);
  });
});

describe('GET /api/data/:collection/changes with Accept: text/event-stream', () => {
  it('gives each event its cursor as id, by which Last-Event-ID goes on', async () => {
    const { name } = await buildFollowed();
    await send('post', name, { title: 'first' });
    const path = `/api/data/${name}/changes?title_ne=x`;
    const client = await connect({ method: 'GET', path, headers: secret() });
    await client.until(isReady);
    const last = client.events.at(-1)!;
    expect(last.id).toBe(last.data.cursor);
    client.close();
    const second = await send('post', name, { title: 'second' });
    const resumed = await connect({ method: 'GET', path, headers: { ...secret(), 'last-event-id': last.id! } });
    await resumed.until(isReady);
    expect([...resumed.known().keys()]).toEqual([second]);
  });

  it('gives everything to who was cut off when told to forget: what it had is not gone on from', async () => {
    const { name } = await buildFollowed();
    const mine = await send('post', name, { userId: USER });
    const open = (more: Record<string, string> = {}) =>
      connect({ method: 'GET', path: `/api/data/${name}/changes`, headers: { ...signedIn(USER), ...more } });
    const client = await open();
    const { id } = await client.until(isReady);
    client.close();
    await setRls(test.app, owner.project._id, name, PRIVATE);
    const told = await open({ 'last-event-id': id! });
    const reset = await told.until(({ event }) => event === 'reset');
    told.close();
    const resumed = await open({ 'last-event-id': reset.id! });
    await resumed.until(isReady);
    expect(resumed.events.map(({ event }) => event)).toEqual(['change', 'ready']);
    expect([...resumed.known().keys()]).toEqual([mine]);
  });

  it.each([
    { version: '1.0', framed: false },
    { version: '1.1', framed: true },
  ])('sends a client of HTTP/$version events in the framing that it reads', async ({ version, framed }) => {
    const { name } = await buildFollowed();
    const { hostname, port } = new URL(test.url);
    const socket = connectTo({ host: hostname, port: Number(port) });
    let text = '';
    const heard = new Promise<void>((resolve) => {
      socket.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.split('event: ready').length === 3 && /\n\n(\r\n)?$/.test(text)) resolve();
      });
    });
    socket.write(
      `GET /api/data/${name}/changes HTTP/${version}\r\nHost: x\r\nAccept: text/event-stream\r\nx-api-key: ${owner.secret}\r\n\r\n`,
    );
    await eventually('the stream is ready', () => text.includes('event: ready'));
    await send('post', name, { title: 'größer' });
    await heard;
    socket.destroy();
    const body = text.slice(text.indexOf('\r\n\r\n') + 4);
    expect(body).toContain('größer');
    // A chunk begins with its length in bytes, in hexadecimal digits, in a line of its own.
    const chunks = [...body.matchAll(/([\da-f]+)\r\n([^\r]*)\r\n/g)];
    expect(chunks.map(([whole]) => whole).join('')).toBe(framed ? body : '');
    for (const [, size, data] of chunks) expect(Number.parseInt(size!, 16)).toBe(Buffer.byteLength(data!));
  });

  it('is opened by a ticket, once, with the rights of whoever got it', async () => {
    const { name } = await buildFollowed(PRIVATE);
    const mine = await send('post', name, { userId: USER });
    await send('post', name, { userId: ANOTHER });
    const asked = await supertest(test.server).post('/api/realtime/ticket').set(signedIn(USER));
    expect(asked.status).toBe(201);
    const { ticket, expiresIn } = (asked.body as { data: { ticket: string; expiresIn: string } }).data;
    expect(expiresIn).toBe('60s');
    const path = `/api/data/${name}/changes?ticket=${ticket}`;
    const client = await connect({ method: 'GET', path });
    await client.until(isReady);
    expect([...client.known().keys()]).toEqual([mine]);
    const again = await connect({ method: 'GET', path });
    expect(again).toMatchObject({ status: 401, body: { code: 'TICKET_INVALID' } });
  });
});
