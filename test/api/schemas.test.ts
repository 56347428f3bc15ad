import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { editCollection, applyEdit, checkStoredDocuments } from '../world/collections.js';
import { documentStore } from '../world/stored.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);

const create = (body: unknown, key = owner.secret) =>
  request(test.server)
    .post('/api/schemas')
    .set('x-api-key', key)
    .send(body as object);

describe('POST /api/schemas', () => {
  it('registers a collection, which then takes documents', async () => {
    const reply = await create({
      name: 'books',
      fields: [
        { name: 'title', type: 'String', required: true },
        { name: 'tags', type: 'Array', items: { type: 'String' } },
      ],
      rls: { mode: 'private', ownerField: 'userId' },
    });
    expect(reply.status).toBe(201);
    expect(reply.body).toMatchObject({
      success: true,
      data: {
        name: 'books',
        mode: 'enforced',
        fields: [
          { name: 'title', type: 'String', required: true },
          { name: 'tags', type: 'Array', items: { type: 'String' } },
        ],
        rls: { enabled: true, mode: 'private', ownerField: 'userId' },
      },
    });
    await request(test.server)
      .post('/api/data/books')
      .set('x-api-key', owner.secret)
      .send({ title: 'a', tags: ['b'] })
      .expect(201);
  });

  it('answers 400 for an empty schema', async () => {
    for (const body of [{ name: 'empty' }, { name: 'empty', fields: [] }]) {
      const reply = await create(body);
      expect([reply.status, reply.body.success, reply.body.message, reply.body.code]).toEqual([
        400,
        false,
        'At least one field is required',
        'EMPTY_SCHEMA',
      ]);
    }
  });

  it.each([
    [{ name: 'x', fields: [{ name: 'a', type: 'Text' }] }],
    [{ name: 'x', fields: [{ name: 'a' }] }],
    [{ name: 'x', fields: [{ name: '$a', type: 'String' }] }],
    [{ name: 'x', fields: [{ name: '_id', type: 'String' }] }],
    [{ name: 'x', fields: [{ name: 'a', type: 'Date', default: 'now' }] }],
    [{ name: 'x', fields: { a: 'String' } }],
    [{ name: 'x', fields: [{ name: 'a', type: 'String' }], color: 'red' }],
    [{ name: '1x', fields: [{ name: 'a', type: 'String' }] }],
    [{ fields: [{ name: 'a', type: 'String' }] }],
    [[]],
  ])('answers 400 for %j', async (body) => {
    expect((await create(body)).status).toBe(400);
  });

  it('needs the secret key', async () => {
    const reply = await create({ name: 'x', fields: [{ name: 'a', type: 'String' }] }, owner.publishable);
    expect([reply.status, reply.body.code]).toEqual([403, 'SECRET_KEY_REQUIRED']);
  });

  it('answers 409 for a name that is taken, 403 for users', async () => {
    await buildCollection(test.app, owner.project, { name: 'taken' });
    expect((await create({ name: 'taken', mode: 'flexible' })).body.code).toBe('COLLECTION_EXISTS');
    expect((await create({ name: 'Users', mode: 'flexible' })).body.code).toBe('USERS_BLOCKED');
  });
});

describe('GET /api/schemas/:collectionName', () => {
  it('answers the schema for any key of the project', async () => {
    await buildCollection(test.app, owner.project, { name: 'seen', fields: [{ name: 'a', type: 'Number' }] });
    for (const key of [owner.secret, owner.publishable]) {
      const reply = await request(test.server).get('/api/schemas/seen').set('x-api-key', key);
      expect(reply.body).toMatchObject({
        success: true,
        data: { name: 'seen', fields: [{ name: 'a', type: 'Number' }] },
      });
    }
    const stranger = await buildProject(test.app);
    const reply = await request(test.server).get('/api/schemas/seen').set('x-api-key', stranger.secret);
    expect([reply.status, reply.body.code]).toEqual([404, 'COLLECTION_NOT_FOUND']);
  });
});

describe('a change of schema', () => {
  const insert = (name: string, body: object) =>
    request(test.server).post(`/api/data/${name}`).set('x-api-key', owner.secret).send(body);

  it('takes effect at once in this process and leaves stored documents as they are', async () => {
    const collection = await buildCollection(test.app, owner.project, {
      name: 'evolving',
      fields: [{ name: 'a', type: 'String' }],
    });
    const { body: before } = await insert('evolving', { a: 'x' }).expect(201);
    await editCollection(test.app, owner.project._id, 'evolving', {
      addFields: [{ name: 'b', type: 'Number', required: true }],
      setFields: [{ name: 'a', type: 'Number' }],
    });
    expect((await insert('evolving', { a: 'x' })).status).toBe(400);
    await insert('evolving', { a: 1, b: 2 }).expect(201);
    const read = await request(test.server).get(`/api/data/evolving/${before._id}`).set('x-api-key', owner.secret);
    expect(read.body).toEqual(before);
    await editCollection(test.app, owner.project._id, 'evolving', { mode: 'flexible' });
    await insert('evolving', { anything: [1] }).expect(201);
    await editCollection(test.app, owner.project._id, 'evolving', { mode: 'enforced' });
    expect((await insert('evolving', { anything: [1] })).status).toBe(400);
    expect(await documentStore(test.app, collection).countDocuments({})).toBe(3);
  });

  it('refuses to make a field unique whose values documents share, and lists them', async () => {
    await buildCollection(test.app, owner.project, {
      name: 'shared',
      fields: [
        { name: 'code', type: 'String' },
        { name: 'other', type: 'String' },
      ],
    });
    for (const code of ['a', 'a', 'a', 'b', 'c', 'c']) await insert('shared', { code }).expect(201);
    const makeUnique = () =>
      editCollection(test.app, owner.project._id, 'shared', {
        setFields: [
          { name: 'other', type: 'String', unique: true },
          { name: 'code', type: 'String', unique: true },
        ],
      });
    await expect(makeUnique()).rejects.toMatchObject({
      kind: 'conflict',
      code: 'DUPLICATE_VALUE',
      details: [{ message: '"a" is in 3 documents' }, { message: '"c" is in 2 documents' }],
    });
    await insert('shared', { code: 'a', other: 'x' }).expect(201);
    await insert('shared', { code: 'a', other: 'x' }).expect(201);
    await request(test.server).get('/api/schemas/shared').set('x-api-key', owner.secret).expect(200);
  });

  it('refuses to make a field unique whose items documents share', async () => {
    await buildCollection(test.app, owner.project, { name: 'listed' });
    for (const code of [['a'], ['a', 'b']]) await insert('listed', { code }).expect(201);
    const making = editCollection(test.app, owner.project._id, 'listed', {
      mode: 'enforced',
      addFields: [{ name: 'code', type: 'String', unique: true }],
    });
    await expect(making).rejects.toMatchObject({
      kind: 'conflict',
      code: 'DUPLICATE_VALUE',
      details: [{ field: 'code', message: '"a" is in several documents' }],
    });
  });

  it('makes a field unique when no values are shared, also while documents come in', async () => {
    await buildCollection(test.app, owner.project, { name: 'racing', fields: [{ name: 'code', type: 'String' }] });
    const inserts = Promise.all(Array.from({ length: 40 }, (_, at) => insert('racing', { code: `c${at}` })));
    await editCollection(test.app, owner.project._id, 'racing', {
      setFields: [{ name: 'code', type: 'String', unique: true }],
    });
    await inserts;
    expect((await insert('racing', { code: 'c7' })).status).toBe(409);
  });

  it('is checked beforehand against the stored documents, as they are stored', async () => {
    const collection = await buildCollection(test.app, owner.project, { name: 'loose' });
    for (const body of [
      { a: 'x', when: '2026-01-01' },
      { a: 5 },
      { b: null },
      { a: 'x' },
      { a: 'y', extra: true },
      { a: 'z', tags: ['t', 1], when: null },
    ]) {
      await insert('loose', body).expect(201);
    }
    const edit = {
      mode: 'enforced' as const,
      addFields: [
        { name: 'a', type: 'String' as const, required: true, unique: true },
        { name: 'when', type: 'Date' as const },
        { name: 'tags', type: 'Array' as const, items: { type: 'String' as const } },
      ],
    };
    const planned = { ...collection, ...applyEdit(collection, edit) };
    const report = await checkStoredDocuments(test.app, planned, new AbortController().signal);
    expect({ ...report, examples: report.examples.map(({ message }) => message).sort() }).toEqual({
      checked: 6,
      violations: 6,
      examples: [
        'a is required; b is not a field of this collection',
        'a must be a String',
        expect.stringMatching(/^a must be unique/),
        'extra is not a field of this collection',
        'tags.1 must be a String',
        'when must be a Date',
      ],
    });
    await expect(editCollection(test.app, owner.project._id, 'loose', edit)).rejects.toMatchObject({
      code: 'DUPLICATE_VALUE',
      details: [{ message: '"x" is in 2 documents' }],
    });
    await insert('loose', { still: 'flexible' }).expect(201);
  });

  it('count those in the trash, which may repeat what others have', async () => {
    const fields = [{ name: 'a', type: 'String' as const, unique: true }];
    const collection = await buildCollection(test.app, owner.project, { name: 'binned', mode: 'enforced', fields });
    for (const a of ['longer than three', 'abc']) {
      const { body } = await insert('binned', { a }).expect(201);
      await request(test.server).delete(`/api/data/binned/${body._id}`).set('x-api-key', owner.secret).expect(200);
    }
    await insert('binned', { a: 'abc' }).expect(201);
    const edit = { setFields: [{ ...fields[0]!, maxLength: 3 }] };
    const planned = { ...collection, ...applyEdit(collection, edit) };
    expect(await checkStoredDocuments(test.app, planned, new AbortController().signal)).toMatchObject({
      checked: 3,
      violations: 1,
      examples: [{ message: expect.stringMatching(/^in the trash: a /) }],
    });
    await expect(editCollection(test.app, owner.project._id, 'binned', edit)).rejects.toMatchObject({
      code: 'CONSTRAINT_VIOLATIONS',
    });
  });
});
