import request from 'supertest';
import { describe, expect, it } from 'vitest';
import type { App } from '../world/app.js';
import {
  type Collection,
  type Field,
  documentsName,
  editCollection,
  listMissingIndexes,
  setRls,
} from '../world/collections.js';
import { collectionStore } from '../world/stored.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const PRIVATE = { mode: 'private', ownerField: 'userId' } as const;

let made = 0;
const test = await useTestApp();
const shop = await buildProject(test.app);

const register = (declaration: object) =>
  request(test.server)
    .post('/api/schemas')
    .set('x-api-key', shop.secret)
    .send({ name: `registered${++made}`, ...declaration });
const build = (declaration: object): Promise<Collection> => buildCollection(test.app, shop.project, declaration);
const edit = (collection: Collection, change: Parameters<typeof editCollection>[3]): Promise<Collection> =>
  editCollection(test.app, shop.project._id, collection.name, change);
const unique = (name: string): Field => ({ name, type: 'String', unique: true });

async function listKeys(collection: Collection): Promise<string[]> {
  const stored = await test.app.db.collection(documentsName(collection)).indexes();
  return stored.map(({ key }) => JSON.stringify(key));
}

describe('the indexes of a collection', () => {
  it.each([
    ['the owner field', ['userId']],
    ['createdAt, by which every list is sorted anyway', ['createdAt']],
    ['_id, which has an index anyway', ['_id', '-_id', '_id,a']],
    ['the same key in two ways', ['a', 'a,-createdAt', 'a,_id']],
  ])('may be requested on %s', async (_, indexes) => {
    for (const rls of [null, PRIVATE]) {
      await register({
        fields: [{ name: 'a', type: 'String' }, ...(rls ? [] : [{ name: 'userId', type: 'String' }])],
        rls,
        indexes,
      }).expect(201);
    }
  });

  it('serve row-level security that is switched on and off where one on the owner field is there', async () => {
    const collection = await build({ indexes: ['userId'] });
    const key = JSON.stringify({ userId: 1, createdAt: -1, _id: -1 });
    for (const rls of [PRIVATE, null, PRIVATE]) {
      const changed = await setRls(test.app, shop.project._id, collection.name, rls);
      expect((await listKeys(changed)).filter((stored) => stored === key)).toHaveLength(1);
      expect(await listMissingIndexes(test.app, changed)).toEqual([]);
    }
    const without = await edit(collection, { indexes: [] });
    expect(await listKeys(without)).toContain(key);
    expect(await listMissingIndexes(test.app, without)).toEqual([]);
  });

  it('follow the owner field when it becomes another one', async () => {
    const collection = await build({ rls: PRIVATE, indexes: ['status', 'a,b'] });
    const rls = { mode: 'private', ownerField: 'authorId' } as const;
    const changed = await setRls(test.app, shop.project._id, collection.name, rls);
    expect(await listMissingIndexes(test.app, changed)).toEqual([]);
    expect((await listKeys(changed)).join()).not.toContain('userId');
  });

  it('are refused with 400 when a collection cannot have so many', async () => {
    const fields = Array.from({ length: 62 }, (_, at) => unique(`u${at}`));
    const { body } = await register({ fields }).expect(400);
    expect(body).toMatchObject({ code: 'INVALID_INDEX', message: expect.stringContaining('at most 63') as string });
    await register({ fields: fields.slice(0, 61) }).expect(201);
  });

  it('can be replaced where there is no room for the old and the new ones at once', async () => {
    const specs = (word: string): string[] => Array.from({ length: 20 }, (_, at) => `${word}${at}`);
    const collection = await build({ rls: PRIVATE, indexes: specs('old') });
    expect(await listKeys(collection)).toHaveLength(64);
    const changed = await edit(collection, { indexes: specs('new') });
    expect(await listMissingIndexes(test.app, changed)).toEqual([]);
    expect((await listKeys(changed)).join()).not.toContain('old');
  });

  it('are complete after a change that is saved while another one drops indexes', async () => {
    const collection = await build({ fields: [{ name: 'a', type: 'String' }] });
    let listed = 0;
    const slow = {
      ...test.app,
      db: {
        ...test.app.db,
        collection(name: string) {
          const store = test.app.db.collection(name);
          const indexes = async () => {
            // Before it builds, before it makes sure, before it drops.
            if (++listed === 3) await edit(collection, { addFields: [unique('late')] });
            return store.indexes();
          };
          return name === documentsName(collection)
            ? Object.assign(Object.create(store) as object, { indexes })
            : store;
        },
      },
    } as unknown as App;
    await editCollection(slow, shop.project._id, collection.name, { indexes: ['a'] });
    const latest = (await collectionStore(test.app).findOne({ _id: collection._id })) as Collection;
    expect(latest).toMatchObject({ indexes: ['a'], fields: [{ name: 'a' }, { name: 'late' }] });
    expect(await listMissingIndexes(test.app, latest)).toEqual([]);
  });

  it.each(['_bsvc', '_bsvc.at', '_bsontype', 'a._bsontype', 'a.__proto__', 'constructor', 'isDeleted'])(
    'cannot be on %s',
    async (spec) => {
      const { body } = await register({ mode: 'flexible', indexes: [spec] }).expect(400);
      expect(body).toMatchObject({ code: 'INVALID_INDEX' });
    },
  );
});

describe('the owner field', () => {
  it.each(['_bsvc', '_bsontype', 'constructor', 'prototype', '__proto__', 'isDeleted', '_id', 'a.b', ''])(
    'cannot be %j',
    async (ownerField) => {
      const { body } = await register({ mode: 'flexible', rls: { mode: 'private', ownerField } }).expect(400);
      expect(body).toMatchObject({ code: 'INVALID_BODY' });
    },
  );
});

describe('a name that the database’s driver takes for a type', () => {
  it.each(['_bsontype=x', '_bsontype_gt=1', 'a._bsontype=x', 'sort=_bsontype', 'fields=_bsontype'])(
    'is refused with 400 in a query: ?%s',
    async (query) => {
      const { name } = await build({});
      const { body } = await request(test.server)
        .get(`/api/data/${name}?${query}`)
        .set('x-api-key', shop.publishable)
        .expect(400);
      expect(body).toMatchObject({ code: 'INVALID_QUERY' });
    },
  );
});
