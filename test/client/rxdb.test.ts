import { createRxDatabase, type RxCollection, type RxConflictHandler, type RxDatabase } from 'rxdb';
import { getRxStorageMemory } from 'rxdb/plugins/storage-memory';
import { afterEach, describe, expect, it } from 'vitest';
import { newId, replicateBsvc } from '../world/client-rxdb.js';
import { createClient } from '../world/client.js';
import { setChanges } from '../world/collections.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { openTestNetwork, type TestNetwork } from '../helpers/offline-fetch.js';
import { useTestApp } from '../helpers/use.js';

interface Note {
  _id: string;
  of?: string;
  title?: string;
  body?: string;
  tags?: string[];
  code?: string;
  updatedAt?: string;
}

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [
    ...['of', 'title', 'body'].map((name) => ({ name, type: 'String' as const })),
    { name: 'tags', type: 'Array', items: { type: 'String' } },
    { name: 'code', type: 'String', unique: true },
    { name: 'stars', type: 'Number', default: 0 },
  ],
});
await buildCollection(test.app, shop.project, { name: 'diary', rls: { mode: 'private', ownerField: 'userId' } });
const server = createClient({ url: test.url, key: shop.secret });

const open: RxDatabase[] = [];
afterEach(async () => {
  for (const db of open.splice(0)) await db.remove();
});

let made = 0;
const nextTest = (): string => `test ${++made}`;

interface Device {
  notes: RxCollection<Note>;
  network: TestNetwork;
  replication: { cancel: () => Promise<unknown> };
  refused: (readonly [string, unknown])[];
  shows: () => Promise<object[]>;
}

/** A client with a database of its own, which keeps the documents of one test. */
async function openDevice(of: string, conflictHandler?: RxConflictHandler<Note>): Promise<Device> {
  const db = await createRxDatabase({ name: newId(), storage: getRxStorageMemory(), multiInstance: false });
  open.push(db);
  const schema = {
    version: 0,
    primaryKey: '_id',
    type: 'object',
    properties: { _id: { type: 'string', maxLength: 24 } },
  } as never;
  await db.addCollections({ notes: { schema, ...(conflictHandler && { conflictHandler }) } });
  const notes = db.notes as RxCollection<Note>;
  const network = openTestNetwork();
  const client = createClient({ url: test.url, key: shop.secret, fetch: network.fetch, retries: 0 });
  const refused: (readonly [string, unknown])[] = [];
  const replication = replicateBsvc({
    ...{ client, name: 'notes', filter: { of }, collection: notes, retryTime: 50 },
    onRefused: ({ code }, document) => refused.push([code, document._id]),
  });
  return { notes, network, replication, refused, shows: () => shown(notes) };
}

const shown = async (notes: RxCollection<Note>): Promise<object[]> =>
  (await notes.find({ sort: [{ _id: 'asc' }] }).exec()).map((note) => note.toJSON());

async function stored(of: string): Promise<object[]> {
  return (await server.collection('notes').list({ filter: { of }, sort: '_id', limit: 1000 })).items;
}

/** All have the same documents as the service. */
function agree(of: string, ...devices: readonly Device[]): Promise<object[]> {
  return eventually('clients and service agree', async () => {
    const expected = await stored(of);
    const text = JSON.stringify(expected.map(sorted));
    for (const { shows } of devices) if (JSON.stringify((await shows()).map(sorted)) !== text) return undefined;
    return expected;
  });
}
const sorted = (document: object): object => Object.fromEntries(Object.entries(document).sort());

describe('a collection of RxDB that is replicated', () => {
  it('has what is stored, live, and stores what is written to it, with its own ids', async () => {
    const of = nextTest();
    await server.collection('notes').insertMany([
      { of, title: 'a' },
      { of, title: 'b' },
    ]);
    await server.collection('notes').insert({ of: 'another', title: 'not mine' });
    const [one, other] = [await openDevice(of), await openDevice(of)];
    expect(await agree(of, one, other)).toMatchObject([{ title: 'a' }, { title: 'b' }]);

    const note = await one.notes.insert({ _id: newId(), of, title: 'mine', tags: ['x'] });
    await eventually('it is with the other', () => other.notes.findOne(note._id).exec());
    await agree(of, one, other);
    const theirs = (await other.notes.findOne(note._id).exec())!;
    await theirs.patch({ tags: ['x', 'y'] });
    await eventually('the change is here', async () => note.getLatest().toJSON().tags?.length === 2);
    await (await other.notes.findOne(note._id).exec())!.remove();
    await eventually('it is gone here', async () => !(await one.notes.findOne(note._id).exec()));
    expect(await agree(of, one, other)).toMatchObject([{ title: 'a' }, { title: 'b' }]);
  });

  it('sends what was written offline, in few requests', async () => {
    const of = nextTest();
    const device = await openDevice(of);
    await agree(of, device);
    device.network.isOn = false;
    await device.notes.bulkInsert(Array.from({ length: 150 }, (_, n) => ({ _id: newId(), of, title: `${n}` })));
    const dropped = await device.notes.insert({ _id: newId(), of, title: 'made and removed offline' });
    await dropped.remove();
    expect(await stored(of)).toEqual([]);
    device.network.isOn = true;
    await eventually('they are stored', async () => (await stored(of)).length === 150);
    await agree(of, device);
  });

  it('keeps what two have changed in one document, where the fields differ', async () => {
    const of = nextTest();
    const { _id } = await server.collection('notes').insert({ of, title: 'a', body: 'b' });
    const [one, other] = [await openDevice(of), await openDevice(of)];
    await agree(of, one, other);
    one.network.isOn = other.network.isOn = false;
    await (await one.notes.findOne(_id).exec())!.patch({ title: 'by one' });
    await (await other.notes.findOne(_id).exec())!.patch({ body: 'by the other' });
    one.network.isOn = other.network.isOn = true;
    await eventually('both are stored', async () =>
      JSON.stringify(await stored(of)).match(/by the other.*by one|by one.*by the other/),
    );
    expect(await agree(of, one, other)).toMatchObject([{ title: 'by one', body: 'by the other' }]);
  });

  it('asks the conflict handler where both have changed a field: RxDB’s own takes what is stored', async () => {
    const of = nextTest();
    const { _id } = await server.collection('notes').insert({ of, title: 'a' });
    const joining: RxConflictHandler<Note> = {
      isEqual: (a, b) => a.updatedAt === b.updatedAt && a.title === b.title,
      resolve: async ({ newDocumentState, realMasterState }) => ({
        ...realMasterState,
        title: `${realMasterState.title} and ${newDocumentState.title}`,
      }),
    };
    const [one, other] = [await openDevice(of), await openDevice(of, joining)];
    await agree(of, one, other);
    one.network.isOn = other.network.isOn = false;
    for (const { notes } of [one, other]) await (await notes.findOne(_id).exec())!.patch({ title: 'offline' });
    await server.collection('notes').update(_id, { title: 'stored' });
    one.network.isOn = true;
    expect(await agree(of, one)).toMatchObject([{ title: 'stored' }]);
    other.network.isOn = true;
    await eventually('they are joined', async () => JSON.stringify(await stored(of)).includes('stored and offline'));
    await agree(of, one, other);
  });

  it('lets a removal win against late changes, and a late removal lose against changes', async () => {
    const of = nextTest();
    const notes = server.collection('notes');
    const [removed, changed] = [await notes.insert({ of, title: 'r' }), await notes.insert({ of, title: 'c' })];
    const device = await openDevice(of);
    await agree(of, device);
    device.network.isOn = false;
    await (await device.notes.findOne(removed._id).exec())!.patch({ title: 'too late' });
    await (await device.notes.findOne(changed._id).exec())!.remove();
    await notes.remove(removed._id);
    await notes.update(changed._id, { body: 'new' });
    device.network.isOn = true;
    await eventually('the change is back', () => device.notes.findOne(changed._id).exec());
    await eventually('the removed one is gone', async () => !(await device.notes.findOne(removed._id).exec()));
    expect(await agree(of, device)).toMatchObject([{ title: 'c', body: 'new' }]);
  });

  it('brings a document back that is written again after its removal', async () => {
    const of = nextTest();
    const device = await openDevice(of);
    const _id = newId();
    const note = await device.notes.insert({ _id, of, title: 'first', body: 'gone' });
    await agree(of, device);
    await eventually('it is stored', async () => (await stored(of)).length === 1);
    await note.getLatest().remove();
    await eventually('it is removed', async () => (await stored(of)).length === 0);
    await device.notes.insert({ _id, of, title: 'again' });
    await eventually('it is back', async () => (await stored(of)).length === 1);
    expect(await agree(of, device)).toMatchObject([{ _id, title: 'again' }]);
  });

  it('sends a batch again without the one that is refused, and one that is too large for itself', async () => {
    const of = nextTest();
    const { _id } = await server.collection('notes').insert({ of, title: 'a' });
    const device = await openDevice(of);
    await agree(of, device);
    device.network.isOn = false;
    await (await device.notes.findOne(_id).exec())!.patch({ body: 'mine' });
    await device.notes.bulkInsert(Array.from({ length: 20 }, (_, n) => ({ _id: newId(), of, title: `${n}` })));
    const large = newId();
    await device.notes.insert({ _id: large, of, title: 'x'.repeat(2_000_000) });
    await server.collection('notes').update(_id, { title: 'theirs' });
    device.network.isOn = true;
    await eventually('the rest is stored', async () => (await stored(of)).length === 21);
    await agree(of, device);
    expect(device.refused.map(([, id]) => id)).toEqual([large]);
    expect(await server.collection('notes').get(_id)).toMatchObject({ title: 'theirs', body: 'mine' });
  });

  it('undoes what the service refuses, and says so; the rest is stored', async () => {
    const of = nextTest();
    await server.collection('notes').insert({ of, code: `${of} taken` });
    const { _id } = await server.collection('notes').insert({ of, code: `${of} own` });
    const device = await openDevice(of);
    await agree(of, device);
    device.network.isOn = false;
    const refused = newId();
    await device.notes.insert({ _id: refused, of, title: 5 as never });
    await (await device.notes.findOne(_id).exec())!.patch({ code: `${of} taken` });
    await device.notes.insert({ _id: newId(), of, title: 'fine' });
    device.network.isOn = true;
    await eventually('both are told', () => device.refused.length === 2);
    expect(device.refused).toEqual([
      ['VALIDATION_FAILED', refused],
      ['DUPLICATE_VALUE', _id],
    ]);
    await eventually('the rest is stored', async () => (await stored(of)).length === 3);
    const kept = (await agree(of, device)) as Note[];
    expect(kept.map(({ code, title }) => code ?? title).sort()).toEqual(['fine', `${of} own`, `${of} taken`]);
  });

  it('forgets what was removed while it was away for longer than changes are kept, and sends its own', async () => {
    const of = nextTest();
    const notes = server.collection('notes');
    const gone = await notes.insert({ of, title: 'gone meanwhile' });
    await notes.insert({ of, title: 'stays' });
    const device = await openDevice(of);
    await agree(of, device);
    device.network.isOn = false;
    await device.notes.insert({ _id: newId(), of, title: 'written offline' });
    await notes.remove(gone._id);
    for (const on of [false, true]) await setChanges(test.app, shop.project._id, 'notes', { on });
    device.network.isOn = true;
    await eventually('the new one is stored', async () => (await stored(of)).length === 2);
    const titles = (await agree(of, device)).map((note) => (note as Note).title);
    expect(titles.sort()).toEqual(['stays', 'written offline']);
  });

  it('neither sends nor pulls for another user than it began with', async () => {
    const client = createClient({ url: test.url, key: shop.publishable, retries: 0 });
    const account = (name: string) => ({ email: `${name}@example.test`, password: 'secret word' });
    await client.auth.signUp(account('ann'));
    const device = await openDevice(nextTest());
    await device.replication.cancel();
    const errors: Error[] = [];
    const replication = replicateBsvc({ client, name: 'diary', collection: device.notes, retryTime: 50 });
    replication.error$.subscribe((error) => errors.push(error));
    await replication.awaitInSync();
    await client.auth.signOut();
    await device.notes.insert({ _id: newId(), title: 'Ann’s' });
    await eventually('it waits', () => JSON.stringify(errors).includes('until its user'));
    await client.auth.signUp(account('bob'));
    expect(await server.collection('diary').count()).toBe(0);
    await client.auth.signOut();
    await client.auth.signIn(account('ann'));
    await eventually('it is Ann’s', async () => {
      const { items } = await server.collection('diary').list();
      return items.length === 1 && items[0]!.userId === client.auth.user!._id;
    });
  });

  it('says why it does not replicate', async () => {
    const client = createClient({ url: test.url, key: shop.secret, retries: 0 });
    const { notes } = await openDevice(nextTest());
    const replication = replicateBsvc({ client, name: 'nowhere', collection: notes, retryTime: 50 });
    const errors: Error[] = [];
    replication.error$.subscribe((error) => errors.push(error));
    await eventually('it says so', () => JSON.stringify(errors).includes('COLLECTION_NOT_FOUND'));
  });
});
