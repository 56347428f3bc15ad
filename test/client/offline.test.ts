import { afterEach, describe, expect, it } from 'vitest';
import { createClient, type Client, type UntypedProject } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { openDevice, type Device } from '../helpers/offline-device.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);
for (const name of ['notes', 'tags']) await buildCollection(test.app, shop.project, { name, mode: 'flexible' });
const server = createClient({ url: test.url, key: shop.secret });

const devices: Device[] = [];
const stops: (() => void)[] = [];
afterEach(() => devices.splice(0).forEach((device) => device.kill()));
let made = 0;
const open = (key = shop.secret): Device => {
  const device = openDevice(test.url, key, `device ${++made}`);
  devices.push(device);
  return device;
};
const textsOf = (list: readonly Record<string, unknown>[]): string => list.map(({ text }) => String(text)).join();
const isSent = (device: Device) =>
  eventually('the queue is sent', async () => {
    await device.store.send();
    return device.store.pending === 0;
  });

describe('a client with a local database', () => {
  it('shows writes at once, keeps them through an outage and a new start, and sends them in order', async () => {
    const device = open();
    const of = `test ${made}`;
    const notes = () => device.api.collection('notes');
    let shown = '?';
    notes().follow.set({ filter: { of }, sort: 'text' }, (list) => (shown = textsOf(list)));
    await eventually('the copy is there', () => shown === '');
    device.network = 'down';
    const one = await notes().insert({ of, text: 'b' });
    expect(one).toMatchObject({ of, text: 'b', _id: expect.stringMatching(/^[\da-f]{24}$/) as string });
    await notes().insertMany([
      { of, text: 'a' },
      { of, text: 'd' },
    ]);
    await notes().update(one._id, { text: 'c', $inc: { n: 2 } });
    await eventually('it shows them', () => shown === 'a,c,d');
    expect(device.store.pending).toBe(4);
    device.kill();
    device.start();
    expect(textsOf((await notes().list({ filter: { of }, sort: '-text' })).items)).toBe('d,c,a');
    expect(await notes().get(one._id)).toMatchObject({ text: 'c', n: 2 });
    expect(await server.collection('notes').count({ of })).toBe(0);
    device.network = 'up';
    await isSent(device);
    expect(textsOf((await server.collection('notes').list({ filter: { of }, sort: 'text' })).items)).toBe('a,c,d');
    expect(await server.collection('notes').get(one._id)).toMatchObject({ text: 'c', n: 2 });
  });

  it('answers what a list answers, and leaves to the service what only that can', async () => {
    const { api } = open();
    const of = `test ${made}`;
    const rows = [1, 2, 3, 10].map((n) => ({
      of,
      n,
      tags: [`t${n}`, 'all'],
      at: new Date(n),
      ...(n > 2 && { big: true }),
    }));
    await server.collection('notes').insertMany(rows);
    const filters: Record<string, unknown>[] = [
      { n_gt: 2 },
      { n_lte: 3, tags: 'all' },
      { n_in: [1, 10] },
      { n_ne: 3 },
      { big_exists: false },
      { at_gte: new Date(2) },
      { tags_startswith: 't1' },
      { or: [{ n: 1 }, { big: true }] },
      { tags_regex: '^t1' },
    ];
    const numbers = async (of_: Client<UntypedProject>, filter: object): Promise<unknown[]> => {
      const { items, total } = await of_
        .collection('notes')
        .list({ filter: { of, ...filter }, sort: ['-n'], limit: 2 });
      return [total, items.map(({ n }) => n as number)];
    };
    for (const filter of filters)
      expect([filter, await numbers(api, filter)]).toEqual([filter, await numbers(server, filter)]);
    const notes = api.collection('notes');
    expect(await notes.count({ of, n_gt: 1 })).toBe(3);
    const [part] = (await notes.list({ filter: { of, n: 2 }, fields: ['n'] })).items;
    expect(part).toEqual({ _id: expect.any(String) as string, n: 2 });
    const all: unknown[] = [];
    for await (const { n } of notes.iterate({ filter: { of }, sort: 'n' })) all.push(n);
    expect(all).toEqual([1, 2, 3, 10]);
    await expect(notes.get('0'.repeat(24))).rejects.toMatchObject({ code: 'DOCUMENT_NOT_FOUND' });
    await expect(notes.list({ filter: { n: undefined } })).rejects.toMatchObject({ code: 'INVALID_QUERY' });
  });

  it('tells its followers of single changes, those of the service too', async () => {
    const { api } = open();
    const of = `test ${made}`;
    const told: string[] = [];
    const stop = api.collection('notes').follow({ filter: { of } }, (event) => {
      told.push(event.type === 'upsert' ? `upsert ${String(event.document.text)}` : event.type);
    });
    const tells = (...events: string[]) => eventually(`it tells ${events.join()}`, () => told.join() === events.join());
    await tells('ready');
    const { _id } = await server.collection('notes').insert({ of, text: 'theirs' });
    await tells('ready', 'upsert theirs', 'ready');
    told.length = 0;
    await api.collection('notes').remove(_id);
    await tells('gone', 'ready');
    stop();
    // Of a window, what is pushed out of it is gone.
    await api.collection('notes').insert({ of, n: 2, text: 'second' });
    told.length = 0;
    stops.push(
      api.collection('notes').follow({ filter: { of }, sort: 'n', limit: 1 } as object, (event) => {
        told.push(event.type === 'upsert' ? `upsert ${String(event.document.text)}` : event.type);
      }),
    );
    await eventually('it shows one', () => told.includes('upsert second'));
    await api.collection('notes').insert({ of, n: 1, text: 'first' });
    await eventually('it moved on', () => told.includes('upsert first') && told.includes('gone'));
    stops.splice(0).forEach((end) => end());
    told.splice(0, told.length, 'gone', 'ready');
    await api.collection('notes').insert({ of, text: 'unheard' });
    expect(told).toEqual(['gone', 'ready']);
  });

  it('lets fields win that only it has changed, and theirs where both have', async () => {
    const [mine, other] = [open(), open()];
    const of = `test ${made}`;
    const { _id } = await server.collection('notes').insert({ of, title: 'old', body: 'old', n: 0 });
    expect((await mine.api.collection('notes').get(_id)).title).toBe('old');
    mine.network = 'down';
    await mine.api.collection('notes').update(_id, { title: 'mine', done: true, $inc: { n: 1 } });
    await mine.api.collection('notes').update(_id, { done: false });
    await other.api.collection('notes').update(_id, { title: 'theirs', body: 'theirs', $inc: { n: 1 } });
    await isSent(other);
    mine.network = 'up';
    await isSent(mine);
    const after = { title: 'theirs', body: 'theirs', done: false, n: 2 };
    expect(await server.collection('notes').get(_id)).toMatchObject(after);
    await eventually('it shows so', async () => (await mine.api.collection('notes').get(_id)).title === 'theirs');
    expect(mine.events.filter(({ type }) => type === 'conflict')).toMatchObject([
      {
        id: _id,
        mine: { title: 'mine', done: true },
        theirs: { title: 'theirs' },
        base: { title: 'old', body: 'old' },
      },
    ]);
  });

  it('takes its own earlier changes for no conflict, also in a later batch', async () => {
    const device = open();
    const notes = device.api.collection('notes');
    const { _id } = await server.collection('notes').insert({ title: 'old' });
    await notes.get(_id);
    device.network = 'down';
    await notes.update(_id, { title: 'first' });
    await notes.insertMany(Array.from({ length: 99 }, (_, n) => ({ of: _id, n })));
    await notes.update(_id, { title: 'second' });
    await notes.insertMany(Array.from({ length: 99 }, (_, n) => ({ of: _id, n: n + 99 })));
    await notes.update(_id, { title: 'third' });
    device.network = 'up';
    await isSent(device);
    expect((await server.collection('notes').get(_id)).title).toBe('third');
    expect(await server.collection('notes').count({ of: _id })).toBe(198);
    expect(device.events.filter(({ type }) => type === 'conflict')).toEqual([]);
  });

  it('asks onConflict what to do, and does it', async () => {
    const device = open();
    device.kill();
    const asked: unknown[] = [];
    device.start({
      onConflict({ mine, theirs }) {
        asked.push(mine.title);
        return { title: `${String(theirs.title)} and ${String(mine.title)}` };
      },
    });
    const { _id } = await server.collection('notes').insert({ title: 'old' });
    await device.api.collection('notes').get(_id);
    device.network = 'down';
    await device.api.collection('notes').update(_id, { title: 'mine' });
    await server.collection('notes').update(_id, { title: 'theirs' });
    device.network = 'up';
    await isSent(device);
    expect((await server.collection('notes').get(_id)).title).toBe('theirs and mine');
    expect(asked).toEqual(['mine']);
    expect(device.events.some(({ type }) => type === 'conflict')).toBe(false);
  });

  it('drops what the service refuses, says so once, and sends the rest', async () => {
    await buildCollection(test.app, shop.project, {
      name: 'strict',
      fields: [{ name: 'text', type: 'String', required: true, maxLength: 5 }],
    });
    const device = open();
    const strict = () => device.api.collection('strict');
    device.network = 'down';
    await strict().insert({ text: 'one' });
    await strict().insert({ text: 'too long' });
    // All or none of these.
    await strict().insertMany([{ text: 'two' }, { wrong: 1 }]);
    await strict().update('0'.repeat(24), { text: 'none' });
    await device.api.collection('nowhere').insert({ text: 'x' });
    await strict().insert({ text: 'last' });
    device.network = 'up';
    await isSent(device);
    expect(textsOf((await server.collection('strict').list({ sort: 'text' })).items)).toBe('last,one');
    const refused = device.events.flatMap((event) => (event.type === 'refused' ? [event] : []));
    const told = refused.map(({ error, operations }) => `${error.status} of ${operations.length}`);
    expect(told.sort()).toEqual(['400 of 1', '400 of 2', '404 of 1', '404 of 1']);
    device.kill();
    device.start();
    await eventually('the copy agrees', async () => (await strict().count()) === 2);
    expect(device.events.filter(({ type }) => type === 'refused')).toEqual([]);
  });

  it('goes on with the service when the device is full or its database fails, and says so', async () => {
    const device = open();
    const of = `test ${made}`;
    const notes = () => device.api.collection('notes');
    await notes().insert({ of, text: 'a' });
    await isSent(device);
    const full = Object.assign(new Error('full'), { name: 'QuotaExceededError' });
    for (const error of [full, new Error('The transaction was aborted')]) {
      device.storageError = error;
      let shown = '?';
      notes().follow.set({ filter: { of }, sort: 'text' }, (list) => (shown = textsOf(list)));
      await notes().insert({ of, text: 'b' });
      expect(textsOf((await server.collection('notes').list({ filter: { of }, sort: 'text' })).items)).toBe('a,b');
      await eventually('it follows', () => shown === 'a,b');
      expect(textsOf((await notes().list({ filter: { of }, sort: 'text' })).items)).toBe('a,b');
      expect(device.events.some(({ type }) => type === 'fault')).toBe(true);
      const { items } = await server.collection('notes').list({ filter: { of, text: 'b' } });
      await server.collection('notes').remove(items[0]!._id);
      device.kill();
      device.storageError = null;
      device.start();
      await eventually('it is as it was', async () => textsOf((await notes().list({ filter: { of } })).items) === 'a');
    }
  });

  it('is a plain client where there is no database', async () => {
    const device = open();
    Object.assign(globalThis, { indexedDB: undefined });
    const { openOfflineStore } = await import('../world/offline.js');
    const store = openOfflineStore('none');
    const api = createClient({ url: test.url, key: shop.secret, offline: store });
    const made_ = await api.collection('notes').insert({ text: 'plain' });
    expect(await server.collection('notes').get(made_._id)).toMatchObject({ text: 'plain' });
    device.kill();
  });

  it('keeps each user to themselves: a session that ends waits for its user, and a sign-out leaves nothing', async () => {
    await buildCollection(test.app, shop.project, {
      name: 'own',
      fields: [{ name: 'text', type: 'String', required: true }],
      rls: { mode: 'private', ownerField: 'userId' },
    });
    const device = open(shop.publishable);
    const own = () => device.api.collection('own');
    const texts = async () => textsOf((await own().list({ sort: 'text' })).items);
    const ann = { email: `ann${made}@example.test`, password: 'secret word' };
    const bob = { email: `bob${made}@example.test`, password: 'secret word' };
    await device.api.auth.signUp(bob);
    await device.api.auth.signOut();
    await device.api.auth.signUp(ann);
    expect(await texts()).toBe('');
    device.network = 'down';
    await own().insert({ text: 'of ann' });
    expect(await texts()).toBe('of ann');
    device.network = 'up';
    const { _id } = device.api.auth.user!;
    await device.api.auth.signIn(bob);
    expect(await texts()).toBe('');
    await own().insert({ text: 'of bob' });
    await isSent(device);
    expect(await texts()).toBe('of bob');
    await device.api.auth.signIn(ann);
    await isSent(device);
    // Ended elsewhere, with something in the queue.
    device.network = 'down';
    await own().update((await own().list()).items[0]!._id, { text: 'by ann' });
    const elsewhere = createClient({ url: test.url, key: shop.publishable });
    await elsewhere.auth.signIn(ann);
    await elsewhere.auth.sessions.end('others', { currentPassword: ann.password });
    device.network = 'up';
    await device.store.send();
    await eventually('the session has ended', () => device.api.auth.user === null);
    await device.api.auth.signIn(ann);
    expect(await texts()).toBe('by ann');
    await isSent(device);
    const stored = async () => (await server.collection('own').list({ sort: 'text' })).items;
    expect((await stored()).map(({ text, userId }) => [text as string, userId === _id])).toEqual([
      ['by ann', true],
      ['of bob', false],
    ]);
    device.network = 'down';
    await own().insert({ text: 'never sent' });
    await device.api.auth.signOut().catch(() => undefined);
    device.network = 'up';
    await device.api.auth.signIn(ann);
    expect(await texts()).toBe('by ann');
    await isSent(device);
    expect(await stored()).toHaveLength(2);
  });
});
