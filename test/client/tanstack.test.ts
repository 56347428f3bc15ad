import { createCollection, createLiveQueryCollection, createTransaction, eq } from '@tanstack/db';
import { afterEach, describe, expect, it } from 'vitest';
import { bsvcCollectionOptions, newId } from '../world/client-tanstack.js';
import { createClient } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { openDevice as openOfflineDevice } from '../helpers/offline-device.js';
import { openTestNetwork } from '../helpers/offline-fetch.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, {
  name: 'tasks',
  fields: [
    ...['of', 'title', 'body'].map((name) => ({ name, type: 'String' as const })),
    { name: 'state', type: 'String', default: 'open' },
  ],
});
await buildCollection(test.app, shop.project, { name: 'diary', rls: { mode: 'private', ownerField: 'userId' } });
const server = createClient({ url: test.url, key: shop.secret });

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

let made = 0;
const nextTest = (): string => `test ${++made}`;

/** A client with a collection of the documents of one test. */
async function openDevice(of: string) {
  const network = openTestNetwork();
  const client = createClient({ url: test.url, key: shop.secret, fetch: network.fetch, retries: 0 });
  const tasks = createCollection(bsvcCollectionOptions({ client, name: 'tasks', filter: { of } }));
  closers.push(() => tasks.cleanup());
  await tasks.preload();
  const titles = (): string[] => tasks.toArray.map(({ title }) => title as string).sort();
  return {
    network,
    tasks,
    titles,
    shows: (...expected: string[]) =>
      eventually(`shown: ${expected.join(', ')}`, () => JSON.stringify(titles()) === JSON.stringify(expected)),
  };
}
const stored = async (of: string) => (await server.collection('tasks').list({ filter: { of }, sort: 'title' })).items;

describe('a collection of TanStack DB', () => {
  it('has what is stored, live, and stores what is changed in it', async () => {
    const of = nextTest();
    const { _id } = await server.collection('tasks').insert({ of, title: 'a' });
    const [one, other] = [await openDevice(of), await openDevice(of)];
    expect(one.titles()).toEqual(['a']);
    const inserted = one.tasks.insert({ _id: newId(), of, title: 'b' });
    // Before the service has answered.
    expect(one.titles()).toEqual(['a', 'b']);
    await inserted.isPersisted.promise;
    expect(one.tasks.toArray.find(({ title }) => title === 'b')).toMatchObject({
      state: 'open',
      createdAt: expect.any(String),
    });
    await other.shows('a', 'b');
    await other.tasks.update(_id, (draft) => {
      draft.title = 'changed';
    }).isPersisted.promise;
    await one.shows('b', 'changed');
    await one.tasks.delete(_id).isPersisted.promise;
    expect(one.titles()).toEqual(['b']);
    await other.shows('b');
    expect(await stored(of)).toMatchObject([{ title: 'b' }]);
  });

  it('is queried live', async () => {
    const of = nextTest();
    const { tasks } = await openDevice(of);
    const open = createLiveQueryCollection((query) =>
      query.from({ task: tasks }).where(({ task }) => eq(task.state, 'open')),
    );
    closers.push(() => open.cleanup());
    await open.preload();
    const { _id } = await server.collection('tasks').insert({ of, title: 'a' });
    await eventually('it is there', () => open.size === 1);
    await server.collection('tasks').update(_id, { state: 'done' });
    await eventually('it is done', () => open.size === 0);
  });

  it('takes back what the service refuses, with all of the transaction', async () => {
    const of = nextTest();
    const { tasks, titles } = await openDevice(of);
    const changed = tasks.insert([
      { _id: newId(), of, title: 'a' },
      { _id: newId(), of, title: 'b', state: 5 },
    ]);
    await expect(changed.isPersisted.promise).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    expect([titles(), await stored(of)]).toEqual([[], []]);
  });

  it('stores the mutations of a transaction of the application together', async () => {
    const of = nextTest();
    const { tasks, shows } = await openDevice(of);
    const options = bsvcCollectionOptions({ client: server, name: 'tasks' });
    const transaction = createTransaction({ mutationFn: (all) => options.onUpdate!(all as never) });
    transaction.mutate(() => {
      const [a, b] = [newId(), newId()];
      tasks.insert([
        { _id: a, of, title: 'a' },
        { _id: b, of, title: 'b' },
      ]);
      tasks.update(a, (draft) => {
        draft.title = 'c';
      });
    });
    await transaction.isPersisted.promise;
    await shows('b', 'c');
  });

  it('keeps changes of two to different fields; of the same the last', async () => {
    const of = nextTest();
    const { _id } = await server.collection('tasks').insert({ of, title: 'a', body: 'b' });
    const [one, other] = [await openDevice(of), await openDevice(of)];
    const change = (device: typeof one, fields: object) =>
      device.tasks.update(_id, (draft) => void Object.assign(draft, fields)).isPersisted.promise;
    await Promise.all([change(one, { title: 'by one' }), change(other, { body: 'by the other' })]);
    for (const { tasks } of [one, other]) {
      await eventually(
        'both are shown',
        () => tasks.get(_id)!.title === 'by one' && tasks.get(_id)!.body === 'by the other',
      );
    }
    await change(one, { body: null });
    expect(one.tasks.get(_id)).not.toHaveProperty('body');
  });

  it('takes changes back that could not be sent', async () => {
    const of = nextTest();
    const { _id } = await server.collection('tasks').insert({ of, title: 'a' });
    const { network, tasks, titles, shows } = await openDevice(of);
    network.isOn = false;
    const late = tasks.update(_id, (draft) => {
      draft.title = 'late';
    });
    expect(titles()).toEqual(['late']);
    await expect(late.isPersisted.promise).rejects.toMatchObject({ code: 'NETWORK' });
    expect(titles()).toEqual(['a']);
    network.isOn = true;
    await server.collection('tasks').update(_id, { title: 'b' });
    await shows('b');
  });

  it('stores what is changed without a network, with a client that has a local database', async () => {
    const of = nextTest();
    const { _id } = await server.collection('tasks').insert({ of, title: 'a' });
    const device = openOfflineDevice(test.url, shop.secret, 'TanStack DB');
    const tasks = createCollection(bsvcCollectionOptions({ client: device.api, name: 'tasks', filter: { of } }));
    closers.push(async () => device.kill());
    closers.push(() => tasks.cleanup());
    await tasks.preload();
    device.network = 'down';
    const added = newId();
    await tasks.insert({ _id: added, of, title: 'b' }).isPersisted.promise;
    for (const title of ['c', 'd']) {
      await tasks.update(_id, (draft) => void Object.assign(draft, { title })).isPersisted.promise;
      expect(tasks.get(_id)).toMatchObject({ title });
    }
    await tasks.delete(added).isPersisted.promise;
    expect(tasks.toArray.map(({ title }) => title as string)).toEqual(['d']);
    device.network = 'up';
    await eventually('it is sent', async () => {
      await device.store.send();
      return device.store.pending === 0;
    });
    expect(await stored(of)).toMatchObject([{ _id, title: 'd' }]);
    expect(tasks.toArray.map(({ title }) => title as string)).toEqual(['d']);
  });

  it('shows nobody else’s documents after a sign-out', async () => {
    const client = createClient({ url: test.url, key: shop.publishable });
    await client.auth.signUp({ email: 'ann@example.test', password: 'secret word' });
    const diary = createCollection(bsvcCollectionOptions({ client, name: 'diary' }));
    closers.push(() => diary.cleanup());
    await diary.preload();
    await diary.insert({ _id: newId(), text: 'Ann’s' }).isPersisted.promise;
    expect(diary.size).toBe(1);
    await client.auth.signOut();
    await eventually('it is empty', () => diary.size === 0);
    await client.auth.signIn({ email: 'ann@example.test', password: 'secret word' });
    await eventually('it is back', () => diary.size === 1);
  });

  it('says why it has nothing', async () => {
    const nowhere = createCollection(bsvcCollectionOptions({ client: server, name: 'nowhere' }));
    closers.push(() => nowhere.cleanup());
    await expect(nowhere.preload()).rejects.toMatchObject({ code: 'COLLECTION_NOT_FOUND' });
  });
});
