import { MongoClient, ObjectId, type Collection as Foreign, type Document } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { documentStore } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { openStreamClient, type StreamClient } from '../helpers/event-stream.js';
import { openFollower } from '../helpers/feed-follower.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

// Whoever writes by a driver past the API is told of only where the log is the engine's own.
let test: TestApp;
let owner: TestProject;
let driver: MongoClient;
let items: Foreign<Document>;
let stream: StreamClient | null = null;

beforeAll(async () => {
  test = await openTestApp();
  owner = await buildProject(test.app);
  const uri = await test.app.db.listen('127.0.0.1:0', () => undefined);
  if (uri === null) return;
  const collection = await buildCollection(test.app, owner.project, { name: 'items', mode: 'flexible' });
  driver = await MongoClient.connect(uri);
  items = driver.db('bsvc').collection(documentStore(test.app, collection).collectionName);
});
afterAll(async () => {
  stream?.close();
  await driver?.close();
  await test.close();
});

const shown = (fields: Document): Document => {
  const at = new Date();
  return { _id: new ObjectId(), ...fields, isDeleted: false, deletedAt: null, createdAt: at, updatedAt: at };
};

describe('changes that a driver makes at the wire transport of the embedded engine', () => {
  it('are told of in the feed and in streams, entering and leaving a filter included', async ({ skip }) => {
    if (test.app.db.kind !== 'embedded') skip();
    const headers = { 'x-api-key': owner.secret };
    const follower = openFollower(test, 'items', headers, 'state=open');
    await follower.catchUp();
    const client = await openStreamClient(test, {
      headers,
      body: { subscriptions: [{ collection: 'items', filter: 'state=open' }] },
    });
    stream = client;
    await client.until(({ event }) => event === 'ready');

    const same = async (): Promise<void> => {
      await follower.catchUp();
      const list = await follower.list();
      expect(follower.known).toEqual(list);
      await vi.waitFor(() => expect(client.known()).toEqual(list), { timeout: 45_000 });
    };

    const leaves = shown({ state: 'open', n: 1 });
    const stays = shown({ state: 'open', n: 2 });
    const enters = shown({ state: 'closed', n: 3 });
    const goes = shown({ state: 'open', n: 4 });
    await items.insertMany([leaves, stays, enters, goes]);
    await same();
    expect(follower.known.size).toBe(3);

    follower.told.length = 0;
    await items.updateOne({ n: 1 }, { $set: { state: 'closed' } });
    await items.findOneAndUpdate({ n: 2 }, { $set: { text: 'told' } });
    await items.replaceOne({ n: 3 }, { ...enters, state: 'open' });
    await items.bulkWrite([{ deleteOne: { filter: { n: 4 } } }, { insertOne: { document: shown({ n: 5 }) } }]);
    await same();
    expect(follower.told.map(({ type, id }) => [type, id])).toEqual([
      ['gone', String(leaves._id)],
      ['upsert', String(stays._id)],
      ['upsert', String(enters._id)],
      ['gone', String(goes._id)],
    ]);
    expect(client.known().get(String(stays._id))).toMatchObject({ text: 'told' });
  });
});
