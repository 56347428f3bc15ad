import { ObjectId } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addCollection } from '../../src/features/collections/add-collection.js';
import { documentsName, type Collection } from '../../src/features/collections/collection.js';
import { collectionStore } from '../../src/features/collections/collection-store.js';
import { documentIndexes } from '../../src/features/collections/indexes/document-indexes.js';
import { createOwnerIndexes } from '../../src/migrations/014-create-owner-indexes.js';
import { keepIdsOfRepeatedRequests } from '../../src/migrations/023-keep-ids-of-repeated-requests.js';
import { noteFieldsOfSets } from '../../src/migrations/028-note-fields-of-sets.js';
import { findMigrationStatus, migrate } from '../../src/migrations/migrate.js';
import { buildCollection, buildProject, storedDocuments, type TestProject } from '../helpers/build-project.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

let test: TestApp;
let shop: TestProject;
beforeAll(async () => {
  test = await openTestApp();
  shop = await buildProject(test.app);
});
afterAll(() => test.close());

describe('023-keep-ids-of-repeated-requests', () => {
  it('forgets answers that hold documents, not those of mails', async () => {
    const requests = test.app.db.collection<{ _id: string; [field: string]: unknown }>('idempotency_keys');
    const common = { projectId: shop.project._id, bodyHash: 'hash', expiresAt: new Date() };
    const ids = Array.from({ length: 100 }, () => new ObjectId());
    await requests.insertMany([
      { _id: 'done', ...common, ids: ids.slice(1), answer: '{"title":"private words"}' },
      { _id: 'under way', ...common, ids: ids.slice(99), answer: null },
      { _id: 'mail', ...common, ids: ids.slice(99), answer: '{"id":1}', leaseUntil: new Date() },
    ]);
    for (let run = 0; run < 2; run++) await keepIdsOfRepeatedRequests.up(test.app.db);
    const kept = await requests
      .find({ bodyHash: 'hash' })
      .sort({ _id: 1 })
      .project<{ _id: string }>({ ids: 0 })
      .toArray();
    expect(kept).toEqual([
      { _id: 'done', ...common, isDone: true, size: 2_048 },
      { _id: 'mail', ...common, answer: '{"id":1}', leaseUntil: expect.any(Date) as Date, size: 512 },
      { _id: 'under way', ...common, isDone: false, size: 512 },
    ]);
  });
});

describe('028-note-fields-of-sets', () => {
  it('notes what a version before has left out, as setting the rules does', async () => {
    const { app } = test;
    const { project } = await buildProject(app);
    const fields = [
      ...['who', 'role', 'team-of', 'board'].map((name) => ({ name, type: 'String' as const })),
      { name: 'people', type: 'Array' as const, items: { type: 'String' as const } },
      { name: 'active', type: 'Boolean' as const },
      { name: 'user', type: 'String' as const },
    ];
    for (const name of ['members', 'other-members']) {
      await addCollection(app, project, { name, mode: 'flexible', fields, rules: 'server-only' });
    }
    const rules = {
      read: 'doc.board in members[who = user.id and role in ["a] and active", "b\\"["] and active].board',
      create: 'doc.board in other-members [ user.id in people and user = user.email and team-of = "x" ] . board',
      delete: 'doc.id in members[user = user.id].id or "x" in members[user = user.id].role',
    };
    const cards = await buildCollection(app, project, { fields: [{ name: 'board', type: 'String' }], rules });
    const named = { projectId: project._id, 'namedBy.collection': cards._id };
    const noted = async (): Promise<unknown> => {
      const found = await collectionStore(app).find(named).sort({ name: 1 }).toArray();
      return found.map(({ name, namedBy }) => [name, namedBy!.map(({ paths = [] }) => [...paths].sort())]);
    };
    const wanted = await noted();
    expect(wanted).toEqual([
      ['members', [['active', 'board', 'role', 'user', 'who']]],
      ['other-members', [['board', 'people', 'team-of', 'user']]],
    ]);
    await collectionStore(app).updateMany(named, { $unset: { 'namedBy.$.paths': '' } });
    expect(await noted()).not.toEqual(wanted);
    for (let run = 0; run < 2; run++) await noteFieldsOfSets.up(app.db);
    expect(await noted()).toEqual(wanted);
  });
});

describe('014-create-owner-indexes', () => {
  const ID = '014-create-owner-indexes';
  /** Adds those that serve sorts, and is run again with it. */
  const LATER = '022-index-trash-and-sorts';
  const PRIVATE = { mode: 'private', ownerField: 'userId' } as const;

  /** A collection as versions before this migration have left it. */
  async function buildOld(indexes: string[], rls: Collection['rls'] = PRIVATE): Promise<Collection> {
    const collection = await buildCollection(test.app, shop.project, { indexes, rls });
    for (const { name } of await listOwn(collection)) {
      await test.app.db.collection(documentsName(collection)).dropIndex(name!);
    }
    await test.app.db.collection('migrations').deleteMany({ _id: { $in: [ID, LATER] as never[] } });
    return collection;
  }

  const listIndexes = (collection: Collection) => test.app.db.collection(documentsName(collection)).indexes();
  const listOwn = async (collection: Collection) =>
    (await listIndexes(collection)).filter(({ name }) => name!.startsWith('own_'));
  const wantedOwn = (collection: Collection) =>
    documentIndexes(collection).filter(({ name }) => name.startsWith('own_'));

  it('gives existing private collections the indexes of new ones', async () => {
    const collection = await buildOld(['status', '-views', 'status,-views', 'userId,views']);
    const open = await buildOld(['status'], { mode: 'public-read', ownerField: 'userId' });
    expect(await migrate(test.app.db)).toEqual([ID, LATER]);
    const made = await listOwn(collection);
    expect(made.map(({ name }) => name)).toEqual([
      'own_userId:status',
      'own_userId:-views',
      'own_userId:status,-views',
      'own_sort_userId:status',
      'own_sort_userId:-views',
    ]);
    expect(made).toMatchObject(wantedOwn(collection));
    expect(await listOwn(open)).toEqual([]);
    expect((await findMigrationStatus(test.app.db)).pending).toEqual([]);
  });

  it('finishes after a kill', async () => {
    const collections = [await buildOld(['a', 'b']), await buildOld(['a', 'b'])];
    let left = 3;
    const dying = {
      ...test.app.db,
      createIndexes: async (...given: Parameters<typeof test.app.db.createIndexes>) => {
        if (left-- === 0) throw new Error('killed');
        await test.app.db.createIndexes(...given);
      },
    };
    await expect(migrate(dying)).rejects.toThrow('killed');
    expect((await findMigrationStatus(test.app.db)).pending).toEqual([ID, LATER]);
    await migrate(test.app.db);
    for (const collection of collections) expect(await listOwn(collection)).toMatchObject(wantedOwn(collection));
  });

  it('changes nothing when it is run again', async () => {
    const collection = await buildOld(['a', 'b,-c']);
    await createOwnerIndexes.up(test.app.db);
    const before = await listIndexes(collection);
    await createOwnerIndexes.up(test.app.db);
    expect(await listIndexes(collection)).toEqual(before);
  });

  it('leaves out an index without room in the collection, or with a document in its way', async () => {
    const full = await buildOld(Array.from({ length: 20 }, (_, at) => `field${at}`));
    const odd = await buildOld(['tags', 'views']);
    await storedDocuments(test.app, odd).insertOne({
      _id: new ObjectId(),
      // From a time when the field was no owner.
      userId: ['a', 'b'],
      tags: ['c', 'd'],
      isDeleted: false,
      deletedAt: null,
      createdAt: new Date(0),
      updatedAt: new Date(0),
    });
    await migrate(test.app.db);
    expect(await listIndexes(full)).toHaveLength(64);
    expect((await listOwn(full)).length).toBe(wantedOwn(full).length);
    expect((await listOwn(odd)).map(({ name }) => name)).toEqual(['own_userId:views', 'own_sort_userId:views']);
  });

  it('does not bring back documents of a dropped collection', async () => {
    const dropping = await buildOld(['a']);
    await collectionStore(test.app).updateOne({ _id: dropping._id }, { $set: { state: 'dropping' } });
    const gone = await buildOld(['a']);
    for (const collection of [dropping, gone]) await test.app.db.collection(documentsName(collection)).drop();
    await migrate(test.app.db);
    const names = await test.app.db.listNames();
    for (const collection of [dropping, gone]) expect(names).not.toContain(documentsName(collection));
  });
});
