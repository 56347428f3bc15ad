import { ObjectId } from 'bson';
import supertest from 'supertest';
import { afterAll, describe, expect, it } from 'vitest';
import { type Collection, setChanges } from '../world/collections.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { idIn, openDataClient, serverOf, type DataClient } from '../helpers/data-client.js';
import { openStreamClient, type StreamClient } from '../helpers/event-stream.js';
import { eventually } from '../helpers/eventually.js';
import { useTestApp } from '../helpers/use.js';

const FIELDS = [
  { name: 'title', type: 'String' as const },
  { name: 'state', type: 'String' as const },
  { name: 'n', type: 'Number' as const },
];

let made = 0;
const open: StreamClient[] = [];

const test = await useTestApp();
const owner = await buildProject(test.app);
afterAll(async () => {
  for (const client of open) client.close();
});

const secret = () => serverOf(owner);
const server = openDataClient(test, secret);

async function build(numbers: readonly number[] = []): Promise<{ name: string; ids: string[] }> {
  const { name }: Collection = await buildCollection(test.app, owner.project, {
    name: `window${++made}`,
    fields: FIELDS,
  });
  await setChanges(test.app, owner.project._id, name, { on: true });
  const ids: string[] = [];
  for (const n of numbers) ids.push(await send('post', name, { n }));
  return { name, ids };
}

const send = (...request: Parameters<DataClient>): Promise<string> => idIn(server(...request));

async function follow(subscription: object): Promise<StreamClient> {
  const client = await openStreamClient(test, { headers: secret(), body: { subscriptions: [subscription] } });
  open.push(client);
  if (client.status === 200) await client.until(({ event }) => event === 'ready');
  return client;
}

const numbersOf = (client: StreamClient): unknown[] => [...client.known().values()].map(({ n }) => n).sort();

/** What a follower is told by a write, until it has everything. */
async function newsBy(client: StreamClient, write: () => Promise<unknown>): Promise<string[]> {
  const from = client.events.length;
  await write();
  const isReady = () => client.events.slice(from).some(({ event }) => event === 'ready');
  await eventually('it has everything', () => isReady());
  return client.events
    .slice(from)
    .flatMap(({ event, data }) => (event === 'change' ? `${data.type} ${data.document?.n ?? data.id}` : []));
}

describe('a window of a collection', () => {
  it('shows the first documents and is told of no others', async () => {
    const { name, ids } = await build([1, 2, 3, 4, 5]);
    const client = await follow({ collection: name, limit: 3, sort: '-n' });
    expect(numbersOf(client)).toEqual([3, 4, 5]);
    await send('patch', `${name}/${ids[0]}`, { title: 'behind it' });
    expect(await newsBy(client, () => send('post', name, { n: 6 }))).toEqual([`gone ${ids[2]}`, 'upsert 6']);
    expect(await newsBy(client, () => send('patch', `${name}/${ids[4]}`, { title: 'in it' }))).toEqual(['upsert 5']);
  });

  it('takes in the next document when one leaves, whatever makes it leave', async () => {
    const { name, ids } = await build([1, 2, 3, 4, 5]);
    const client = await follow({ collection: name, filter: { state_exists: false }, limit: 2, sort: '-n' });
    const [first, second, third, fourth, fifth] = ids;
    const leaves = (write: () => Promise<unknown>, of: string) => async () => {
      const news = await newsBy(client, write);
      expect(news[0]).toBe(`gone ${of}`);
      return news.slice(1);
    };
    expect(await leaves(() => send('delete', `${name}/${fifth}`), fifth!)()).toEqual(['upsert 3']);
    expect(await leaves(() => send('patch', `${name}/${fourth}`, { state: 'done' }), fourth!)()).toEqual(['upsert 2']);
    expect(await leaves(() => send('patch', `${name}/${third}`, { n: 0 }), third!)()).toEqual(['upsert 1']);
    expect(await newsBy(client, () => send('patch', `${name}/${fifth}/recover`))).toEqual([
      `gone ${first}`,
      'upsert 5',
    ]);
    expect(await leaves(() => send('delete', `${name}/${second}?permanent=true`), second!)()).toEqual(['upsert 1']);
  });

  it('breaks ties by id, and sorts what has no value first', async () => {
    const { name } = await build();
    const ids = Array.from({ length: 4 }, () => new ObjectId().toHexString());
    for (const id of [ids[3]!, ids[1]!]) await send('post', name, { _id: id, n: 1 });
    const client = await follow({ collection: name, limit: 2, sort: 'n' });
    expect(await newsBy(client, () => send('post', name, { _id: ids[2]!, n: 1 }))).toEqual([
      `gone ${ids[3]}`,
      'upsert 1',
    ]);
    const empty = await newsBy(client, () => send('post', name, { _id: ids[0]!, title: 'no number' }));
    expect(empty).toEqual([`gone ${ids[2]}`, `upsert ${ids[0]}`]);
  });

  it('sorts by texts of any length', async () => {
    const { name } = await build();
    const long = 'x'.repeat(1_000);
    for (const end of ['c', 'b']) await send('post', name, { title: long + end, n: end.charCodeAt(0) });
    const client = await follow({ collection: name, limit: 1, sort: 'title' });
    await send('post', name, { title: `${long}a`, n: 1 });
    await eventually('the first by its last character', () => String(numbersOf(client)) === '1');
  });

  it('goes on from a cursor: with nothing where nothing has changed, else with all of it', async () => {
    const { name, ids } = await build([1, 2, 3]);
    const window = { collection: name, limit: 2, sort: '-n' };
    const first = await follow(window);
    const since = first.cursor()!;
    await send('patch', `${name}/${ids[0]}`, { title: 'behind it' });
    const same = await follow({ ...window, since });
    expect(same.events.map(({ event }) => event)).toEqual(['ready']);
    await send('patch', `${name}/${ids[1]}`, { title: 'in it' });
    const changed = await follow({ ...window, since });
    expect(changed.events.map(({ event }) => event)).toEqual(['reset', 'change', 'change', 'ready']);
    expect(numbersOf(changed)).toEqual([2, 3]);
  });

  it('is answered by pages too, which wait until it changes', async () => {
    const { name, ids } = await build([1, 2, 3]);
    const ask = async (more: string) => {
      const response = await supertest(test.server)
        .get(`/api/data/${name}/changes?limit=2&sort=-n${more}`)
        .set(secret());
      expect(response.status).toBe(200);
      const { items, ...rest } = (response.body as { data: { items: { document: { n: number } }[]; cursor: string } })
        .data;
      return { ...rest, shown: items.map(({ document }) => document.n) };
    };
    const { cursor, ...first } = await ask('');
    expect(first).toEqual({ more: false, shown: [3, 2] });
    await send('patch', `${name}/${ids[0]}`, { title: 'behind it' });
    expect(await ask(`&since=${cursor}`)).toMatchObject({ more: false, shown: [] });
    const waiting = ask(`&since=${cursor}&wait=25`);
    await send('patch', `${name}/${ids[0]}`, { title: 'still' });
    await send('patch', `${name}/${ids[0]}`, { n: 4 });
    expect(await waiting).toMatchObject({ more: false, reset: true, shown: [4, 3] });
    expect(await ask('&since=now')).toMatchObject({ shown: [] });
  });

  it.each([
    [{ sort: 'n' }, 'sort needs limit: the first documents are followed'],
    [{ limit: 2, sort: 'isDeleted' }, 'sort: isDeleted cannot be sorted by'],
    [{ limit: 2, sort: 'nn' }, 'Unknown field "nn" in sort: did you mean "n"?'],
    [{ limit: 2, filter: 'limit=3' }, 'limit is no filter: it stands beside it'],
  ])('refuses %j as a list does', async (asked, message) => {
    const { name } = await build();
    const client = await follow({ collection: name, ...asked });
    expect([client.status, client.body]).toMatchObject([400, { code: 'INVALID_QUERY', message }]);
  });
});
