import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import type { Collection } from '../world/collections.js';
import { documentStore } from '../world/stored.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';
import { WRITE_MATRIX, signBearers, type WriteOperation } from './access-matrix.js';

const USER = new ObjectId().toHexString();
const ANOTHER = new ObjectId().toHexString();

const collections = new Map<string, Collection>();

const test = await useTestApp();
const owner = await buildProject(test.app);
const stranger = await buildProject(test.app);
for (const rls of ['off', 'public-read', 'private'] as const) {
  const collection = await buildCollection(test.app, owner.project, {
    name: rls,
    fields: [
      { name: 'title', type: 'String', required: true },
      { name: 'userId', type: 'String' },
    ],
    rls: rls === 'off' ? null : { mode: rls, ownerField: 'userId' },
  });
  collections.set(rls, collection);
}
await buildCollection(test.app, owner.project, { name: 'loose', rls: { mode: 'private', ownerField: 'userId' } });
const tokens = signBearers(test.app, owner.project, stranger.project, USER);

/** A stored document, put there past all rules. */
async function place(collection: Collection, userId: string, isDeleted: boolean): Promise<string> {
  const deletedAt = isDeleted ? new Date(test.app.clock.now()) : null;
  const [id] = await placeDocuments(test.app, collection, [{ title: 'before', userId, isDeleted, deletedAt }]);
  return id!;
}

interface Attempt {
  method: 'post' | 'patch' | 'delete';
  path: string;
  body?: object;
  /** The document that must not change when the attempt is refused. */
  document?: string;
}

async function prepare(operation: WriteOperation, collection: Collection): Promise<Attempt> {
  const base = `/api/data/${collection.name}`;
  const [verb, whose] = operation.split(' ') as [string, string];
  switch (operation) {
    case 'insert':
      return { method: 'post', path: base, body: { title: 'new' } };
    case 'insert as the user':
      return { method: 'post', path: base, body: { title: 'new', userId: USER } };
    case 'insert as another':
      return { method: 'post', path: base, body: { title: 'new', userId: ANOTHER } };
    case 'bulk insert':
      return { method: 'post', path: `${base}/bulk`, body: [{ title: 'one' }, { title: 'two' }] };
    case 'bulk insert, one as another':
      return { method: 'post', path: `${base}/bulk`, body: [{ title: 'one' }, { title: 'two', userId: ANOTHER }] };
    case 'change the owner': {
      const document = await place(collection, USER, false);
      return { method: 'patch', path: `${base}/${document}`, body: { title: 'after', userId: ANOTHER }, document };
    }
  }
  const document = await place(collection, whose === 'mine' ? USER : ANOTHER, verb === 'recover');
  const path = `${base}/${document}`;
  if (verb === 'change') return { method: 'patch', path, body: { title: 'after' }, document };
  if (verb === 'trash') return { method: 'delete', path, document };
  if (verb === 'delete') return { method: 'delete', path: `${path}?permanent=true`, document };
  return { method: 'patch', path: `${path}/recover`, document };
}

describe.each(WRITE_MATRIX.flatMap(({ bearers, ...row }) => bearers.map((bearer) => ({ bearer, ...row }))))(
  'RLS $rls, $key key, bearer: $bearer',
  ({ rls, key, bearer, outcomes }) => {
    it.each(Object.entries(outcomes) as [WriteOperation, number | [number, string]][])(
      '%s: %j',
      async (operation, outcome) => {
        const collection = collections.get(rls)!;
        const { method, path, body, document } = await prepare(operation, collection);
        const store = documentStore(test.app, collection);
        const before = document ? await store.findOne({ _id: new ObjectId(document) }) : await store.countDocuments({});
        const call = request(test.server)[method](path).set('x-api-key', owner[key]);
        if (tokens[bearer]) void call.set('authorization', `Bearer ${tokens[bearer]}`);
        const reply = body ? await call.send(body) : await call;

        const [status, code] = typeof outcome === 'number' ? [outcome, undefined] : outcome;
        expect([reply.status, reply.body.code]).toEqual([status, code]);
        if (code === 'OWNER_IMMUTABLE') expect(reply.body.message).toBe('Owner field immutable');
        const after = document ? await store.findOne({ _id: new ObjectId(document) }) : await store.countDocuments({});
        if (code) expect(after).toEqual(before);
        else expect(after).not.toEqual(before);
        if (operation === 'insert' && status === 201) {
          const expected = key === 'publishable' ? USER : undefined;
          expect((reply.body as Record<string, unknown>).userId).toBe(expected);
        }
      },
    );
  },
);

describe('the owner field', () => {
  const send = (id: string, body: object, key: 'publishable' | 'secret' = 'publishable') =>
    request(test.server)
      .patch(`/api/data/private/${id}`)
      .set('x-api-key', owner[key])
      .set('authorization', `Bearer ${tokens.user}`)
      .send(body);

  it('may be sent back with its own value', async () => {
    const id = await place(collections.get('private')!, USER, false);
    expect((await send(id, { title: 'x', userId: USER })).status).toBe(200);
    expect((await send(id, { title: 'x', userId: USER }, 'secret')).status).toBe(200);
  });

  it.each([
    ['null', { userId: null }],
    ['an empty text', { userId: '' }],
    ['a list with the user', { userId: [USER] }],
    ['a dotted path', { 'userId.x': USER }],
    ['a position', { 'userId.0': USER }],
    ['an object', { userId: { id: USER } }],
  ])('cannot be changed by %s, with any key', async (_what, body) => {
    const id = await place(collections.get('private')!, USER, false);
    for (const key of ['publishable', 'secret'] as const) {
      const reply = await send(id, { title: 'x', ...body }, key);
      expect([reply.status, reply.body.message]).toEqual([403, 'Owner field immutable']);
    }
    const stored = await documentStore(test.app, collections.get('private')!).findOne({ _id: new ObjectId(id) });
    expect(stored).toMatchObject({ title: 'before', userId: USER });
  });

  it.each([[null], [[USER]], [''], [5]])('of a new document is nobody else: %j', async (userId) => {
    for (const name of ['private', 'loose']) {
      const add = (key: 'publishable' | 'secret', bearer = {}) =>
        request(test.server)
          .post(`/api/data/${name}`)
          .set({ 'x-api-key': owner[key], ...bearer })
          .send({ title: 'x', userId });
      const reply = await add('publishable', { authorization: `Bearer ${tokens.user}` });
      expect([reply.status, reply.body.code]).toEqual([403, 'OWNER_MISMATCH']);
      if (userId === 5) expect((await add('secret').expect(400)).body.details).toMatchObject([{ field: 'userId' }]);
    }
  });

  it('can be given once, by the secret key, to a document that has none', async () => {
    const reply = await request(test.server)
      .post('/api/data/private')
      .set('x-api-key', owner.secret)
      .send({ title: 'nobody’s' })
      .expect(201);
    const id = (reply.body as { _id: string })._id;
    expect((await send(id, { userId: USER })).body.code).toBe('OWNER_MISMATCH');
    expect((await send(id, { userId: USER }, 'secret')).body.data.userId).toBe(USER);
    expect((await send(id, { userId: ANOTHER }, 'secret')).body.code).toBe('OWNER_IMMUTABLE');
  });

  it('gives no access to a document through another project', async () => {
    const stranger = await buildProject(test.app);
    await buildCollection(test.app, stranger.project, { name: 'private' });
    const id = await place(collections.get('private')!, USER, false);
    for (const method of ['get', 'patch', 'delete'] as const) {
      const reply = await request(test.server)
        [method](`/api/data/private/${id}`)
        .set('x-api-key', stranger.secret)
        .send({ title: 'x' });
      expect([reply.status, reply.body.code]).toEqual([404, 'DOCUMENT_NOT_FOUND']);
    }
  });
});
