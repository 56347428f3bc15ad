import { expect, it } from 'vitest';
import { createClient, type Client, type UntypedProject } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { openDevice, type Device } from '../helpers/offline-device.js';
import { openRandom, type Random } from '../helpers/random.js';
import { runs } from '../helpers/runs.js';
import { openSeed } from '../helpers/seed.js';
import { useTestApp } from '../helpers/use.js';

const STEPS = 60;
/** Documents that nobody removes: every change of them that was stored on a device is found in the end. */
const KEPT = 4;
const FIELDS = ['a', 'b', 'c'];

const test = await useTestApp();
const shop = await buildProject(test.app);
const server = createClient({ url: test.url, key: shop.secret });

/** How likely it is that a device has no room for what is to be stored. */
const FULL = [0, 0, 0.2, 1];

interface World {
  name: string;
  random: Random;
  devices: Device[];
  ids: string[];
  /** Marks by document: of changes that a device has stored, and of those that it may have. */
  stored: Map<string, string[]>;
  begun: Set<string>;
  made: number;
}

/** One change on a device, which may be killed before it is stored. */
async function write({ name, random, ids, stored, begun, made }: World, device: Device): Promise<void> {
  const notes = device.api.collection(name);
  const mark = `mark ${made}`;
  const kind = random.below(10);
  if (kind === 0) {
    const _id = made.toString(16).padStart(24, 'c');
    ids.push(_id);
    begun.add(mark);
    await notes.insert({ _id, marks: [mark], n: 1 });
    stored.set(_id, [mark]);
    return;
  }
  const id = random.pick(ids);
  if (kind === 1 && ids.indexOf(id) >= KEPT) return notes.remove(id);
  const change = { [random.pick(FIELDS)]: mark };
  if (kind < 5) return void (await notes.update(id, change));
  begun.add(mark);
  const plain = kind < 7 ? change : {};
  if (kind === 9) {
    const other = random.pick(ids.slice(0, KEPT));
    await device.api.batch((batch) => {
      batch.collection(name).update(other, { $push: { marks: mark }, $inc: { n: 1 } });
      batch.collection('logs').insert({ name, mark });
    });
    stored.get(other)!.push(mark);
    return;
  }
  await notes.update(id, { ...plain, $push: { marks: mark }, $inc: { n: 1 } });
  stored.get(id)?.push(mark);
}

async function step(world: World): Promise<void> {
  const { random } = world;
  const device = random.pick(world.devices);
  world.made += 1;
  if (random.chance(0.25)) device.network = random.pick(['up', 'up', 'down', 'answers lost']);
  if (random.chance(0.1)) {
    const [full, turns] = [random.pick(FULL), random.fork(`room ${world.made}`)];
    device.isFull = () => turns.chance(full);
  }
  const writing = write({ ...world }, device);
  writing.catch(() => undefined);
  // A run that is killed answers nothing any more.
  const ended = random.chance(0.15);
  if (random.chance(0.3)) void device.store.send().catch(() => undefined);
  for (let turns = random.below(12); turns > 0; turns--) await new Promise((next) => setImmediate(next));
  // Without room it is the service that takes a write, or does not.
  const isRefused = (): boolean => device.events.some(({ type }) => type === 'fault');
  if (!ended) {
    return writing.catch((error: unknown) => {
      if (!isRefused()) throw error;
    });
  }
  device.kill();
  device.start();
}

it('whatever order outages and kills come in, devices and service agree, and nothing is done twice', async () => {
  const seed = openSeed('offline');
  await buildCollection(test.app, shop.project, { name: 'logs', mode: 'flexible' });
  for (let run = 0; run < runs(6); run++) {
    const random = openRandom(seed).fork(`run ${run}`);
    const name = `notes${run}`;
    await buildCollection(test.app, shop.project, { name, mode: 'flexible' });
    const devices = ['one', 'two'].map((each) => openDevice(test.url, shop.secret, `${run} ${each}`));
    const ids = Array.from({ length: KEPT }, (_, n) => n.toString(16).padStart(24, 'a'));
    for (const _id of ids) await server.collection(name).insert({ _id, a: '0', b: '0', c: '0', marks: [], n: 0 });
    for (const { api } of devices) expect((await api.collection(name).list()).total).toBe(KEPT);
    const stored = new Map<string, string[]>(ids.map((id) => [id, []]));
    const world: World = { name, random, devices, ids, stored, begun: new Set(), made: 0 };
    for (let n = 0; n < STEPS; n++) await step(world);

    for (const device of devices) device.network = 'up';
    const all = (api: Client<UntypedProject>) => api.collection(name).list({ limit: 1000, sort: '_id' });
    await eventually(`all agree in run ${run}`, async () => {
      for (const { store } of devices) await store.send();
      const [theirs, ...own] = await Promise.all([server, ...devices.map(({ api }) => api)].map(all));
      if (devices.some(({ store }) => store.pending > 0)) return false;
      return own.every(({ items }) => JSON.stringify(items) === JSON.stringify(theirs!.items));
    });
    const { items } = await all(server);
    for (const { _id, marks, n } of items as { _id: string; marks: string[]; n: number }[]) {
      expect(marks.filter((mark, at) => marks.indexOf(mark) !== at || !world.begun.has(mark))).toEqual([]);
      expect(marks).toHaveLength(n);
      // A document that others have removed, or not got yet, takes no changes.
      if (ids.indexOf(_id) < KEPT) expect(marks).toEqual(expect.arrayContaining(stored.get(_id)!));
    }
    const logs = (await server.collection('logs').list({ filter: { name }, limit: 1000 })).items;
    expect(new Set(logs.map(({ mark }) => mark as string)).size).toBe(logs.length);
    for (const device of devices) device.kill();
  }
});
