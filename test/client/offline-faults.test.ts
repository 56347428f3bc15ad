import { afterEach, describe, expect, it, vi } from 'vitest';
import { createClient } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { openDevice, type Device } from '../helpers/offline-device.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);
for (const name of ['notes', 'own']) {
  await buildCollection(test.app, shop.project, {
    ...{ name, mode: 'flexible' },
    ...(name === 'own' && { rls: { mode: 'private', ownerField: 'userId' } }),
  });
}
const server = createClient({ url: test.url, key: shop.secret });
const stored = server.collection('notes');

let made = 0;
const devices: Device[] = [];
const open = (key = shop.secret): Device => {
  const device = openDevice(test.url, key, `device ${++made}`);
  devices.push(device);
  return device;
};
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  devices.splice(0).forEach((device) => device.kill());
});
const isSent = (device: Device) =>
  eventually('the queue is sent', async () => {
    await device.store.send();
    return device.store.pending === 0;
  });
const refusedOf = ({ events }: Device) =>
  events.flatMap((event) => (event.type === 'refused' ? [[event.error.code, event.operations[0]!.id]] : []));

/** The service no longer knows the keys of requests by then, and the device no longer trusts it to. */
const passDay = (): void => {
  const { now } = Date;
  vi.spyOn(Date, 'now').mockImplementation(() => now() + 25 * 3600_000);
};

describe('a device that comes back after a day', () => {
  it('drops operators whose answer was lost, and says so: nothing else is lost, and nothing is done twice', async () => {
    const device = open();
    const notes = () => device.api.collection('notes');
    const [one, two] = [await stored.insert({ n: 0 }), await stored.insert({ n: 0, text: 'old' })];
    await notes().list();
    device.network = 'down';
    // The first is sent alone, as always.
    await notes().insert({ text: 'first' });
    await notes().update(one._id, { $inc: { n: 1 } });
    await notes().update(two._id, { text: 'new' });
    await notes().update(two._id, { $inc: { n: 1 } });
    const { _id } = await notes().insert({ text: 'inserted' });
    let answers = 0;
    device.losesAnswer = (address) => address.endsWith('/batch') && ++answers > 1;
    device.network = 'up';
    await device.store.send();
    await eventually('it was carried out', async () => (await stored.get(two._id)).n === 1);
    device.kill();
    passDay();
    device.losesAnswer = () => false;
    device.start();
    await notes().list();
    await isSent(device);
    expect(refusedOf(device)).toEqual([
      ['OUTCOME_UNKNOWN', one._id],
      ['OUTCOME_UNKNOWN', two._id],
    ]);
    expect(await stored.get(one._id)).toMatchObject({ n: 1 });
    expect(await stored.get(two._id)).toMatchObject({ n: 1, text: 'new' });
    expect(await stored.count({ _id })).toBe(1);
  });

  it('drops such an operator though the device was full and could not note that it was sent', async () => {
    const device = open();
    const notes = () => device.api.collection('notes');
    const { _id } = await stored.insert({ n: 0 });
    await notes().list();
    device.network = 'down';
    await notes().update(_id, { $inc: { n: 1 } });
    device.isFull = () => true;
    device.network = 'answers lost';
    await device.store.send();
    await eventually('it was carried out', async () => (await stored.get(_id)).n === 1);
    device.kill();
    passDay();
    device.isFull = () => false;
    device.network = 'up';
    device.start();
    await notes().list();
    await isSent(device);
    expect(refusedOf(device)).toEqual([['OUTCOME_UNKNOWN', _id]]);
    expect(await stored.get(_id)).toMatchObject({ n: 1 });
  });

  it('sends what was never sent', async () => {
    const device = open();
    const { _id } = await stored.insert({ n: 0 });
    await device.api.collection('notes').list();
    device.network = 'down';
    await device.api.collection('notes').update(_id, { $inc: { n: 1 } });
    device.kill();
    passDay();
    device.network = 'up';
    device.start();
    await device.api.collection('notes').list();
    await isSent(device);
    expect(refusedOf(device)).toEqual([]);
    expect(await stored.get(_id)).toMatchObject({ n: 1 });
  });
});

it('halves a batch that is too much for the service until what is too much alone is refused', async () => {
  const device = open();
  const of = `test ${made}`;
  const notes = device.api.collection('notes');
  await notes.insert({ of, n: -1 });
  await isSent(device);
  device.network = 'down';
  const keys = Object.fromEntries(Array.from({ length: 10_001 }, (_, n) => [`key${n}`, 1]));
  const ids: string[] = [];
  for (let n = 0; n < 9; n++) ids.push((await notes.insert({ of, n, ...(n === 5 && { keys }) }))._id);
  device.network = 'up';
  await isSent(device);
  expect(refusedOf(device)).toEqual([[expect.stringMatching(/^TOO_MANY/), ids[5]]]);
  const { items } = await stored.list({ filter: { of }, sort: 'n' });
  expect(items.map(({ n }) => n)).toEqual([-1, 0, 1, 2, 3, 4, 6, 7, 8]);
});

describe('two tabs', () => {
  const openTabs = (locks: object): { device: Device; tabs: Device['api'][] } => {
    vi.stubGlobal('navigator', { locks });
    const device = open();
    const first = device.api;
    device.start();
    return { device, tabs: [first, device.api] };
  };

  it('that both believe to be the one that sends send each write once', async () => {
    const everybody = { request: (_name: string, _options: object, hold: () => unknown) => hold() };
    const { device, tabs } = openTabs(everybody);
    const { _id } = await stored.insert({ n: 0 });
    for (const tab of tabs) await tab.collection('notes').list();
    device.network = 'down';
    const of = `test ${made}`;
    for (let n = 0; n < 40; n++) {
      const notes = tabs[n % 2]!.collection('notes');
      await notes.update(_id, { $inc: { n: 1 } });
      await notes.insert({ of, n });
    }
    device.network = 'up';
    await isSent(device);
    expect(await stored.get(_id)).toMatchObject({ n: 40 });
    const { items } = await stored.list({ filter: { of }, sort: 'n', limit: 100 });
    expect(items.map(({ n }) => n)).toEqual(Array.from({ length: 40 }, (_, n) => n));
    for (const tab of tabs)
      await eventually('both show so', async () => (await tab.collection('notes').get(_id)).n === 40);
    expect(refusedOf(device)).toEqual([]);
  });

  it('go on where a tab that does nothing holds the lock', async () => {
    // What is waited for long is not waited for here.
    const { setTimeout: wait } = globalThis;
    vi.stubGlobal('setTimeout', (run: () => void, ms?: number, ...given: []) =>
      wait(run, ms === 10_000 ? 20 : ms, ...given),
    );
    const { device, tabs } = openTabs({ request: () => new Promise(() => undefined) });
    const { _id } = await tabs[0]!.collection('notes').insert({ text: 'sent' });
    await eventually('it is sent', async () => (await stored.count({ _id })) === 1);
    await eventually('all know', () => device.store.pending === 0);
  });
});

describe('a sign-out', () => {
  class LocalStorage {
    [key: string]: unknown;
    getItem(key: string): unknown {
      return this[key] ?? null;
    }
    setItem(key: string, value: string): void {
      this[key] = value;
    }
    removeItem(key: string): void {
      delete this[key];
    }
  }

  it('leaves nothing on the device though the page is killed right after it', async () => {
    vi.stubGlobal('localStorage', new LocalStorage());
    const device = open(shop.publishable);
    const ann = { email: `ann${made}@example.test`, password: 'secret word' };
    await device.api.auth.signUp(ann);
    const own = () => device.api.collection('own');
    const { _id } = device.api.auth.user!;
    await own().insert({ text: 'of ann' });
    await isSent(device);
    device.network = 'down';
    await own().insert({ text: 'never sent' });
    void device.api.auth.signOut().catch(() => undefined);
    device.kill();
    expect((await device.databases()).some((name) => name!.endsWith(_id))).toBe(true);

    device.network = 'up';
    device.start();
    await eventually('it is deleted', async () => !(await device.databases()).some((name) => name!.endsWith(_id)));
    await device.api.auth.signUp({ ...ann, email: `bob${made}@example.test` });
    expect((await own().list()).items).toEqual([]);
    await device.api.auth.signIn(ann);
    expect((await own().list()).items.map(({ text }) => text)).toEqual(['of ann']);
    expect(device.store.pending).toBe(0);
    // It is no longer to be deleted.
    device.network = 'down';
    await own().insert({ text: 'kept' });
    device.kill();
    device.start();
    expect((await own().list({ sort: 'createdAt' })).items.map(({ text }) => text)).toEqual(['of ann', 'kept']);
  });
});
