import request from 'supertest';
import { describe, expect, it } from 'vitest';
import type { Collection, Field } from '../world/collections.js';
import { documentStore } from '../world/stored.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const FIELDS: Field[] = [
  { name: 'title', type: 'String', required: true },
  { name: 'slug', type: 'String', unique: true },
  { name: 'views', type: 'Number', default: 0 },
  { name: 'live', type: 'Boolean' },
  { name: 'when', type: 'Date' },
  { name: 'author', type: 'Ref', ref: 'people' },
  { name: 'tags', type: 'Array', items: { type: 'String' } },
  {
    name: 'meta',
    type: 'Object',
    fields: [
      { name: 'lang', type: 'String', required: true },
      { name: 'count', type: 'Number' },
    ],
  },
  { name: 'free', type: 'Object' },
  { name: 'list', type: 'Array' },
];

/** Of one address no more are under way at once: others wait, and are refused after a second. */
const AT_ONCE = 100;

const test = await useTestApp();
const owner = await buildProject(test.app);
const posts = await buildCollection(test.app, owner.project, { name: 'posts', fields: FIELDS });
const flexible = await buildCollection(test.app, owner.project, { name: 'anything' });

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
const call = (method: Method, path: string) =>
  request(test.server)[method](`/api/data/${path}`).set('x-api-key', owner.secret);
const insert = (body: object, collection = 'posts') => call('post', collection).send(body);
const countStored = (collection: Collection): Promise<number> => documentStore(test.app, collection).countDocuments({});

const nested = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;

async function inserted(body: object, collection = 'posts'): Promise<Record<string, unknown> & { _id: string }> {
  const reply = await insert(body, collection).expect(201);
  return reply.body as Record<string, unknown> & { _id: string };
}

describe('POST /api/data/:collectionName', () => {
  it('answers 201 with the document itself, its system fields last', async () => {
    const reply = await insert({ title: 'Hello', when: '2026-01-31T23:30:00+01:30', meta: { lang: 'de' } });
    expect(reply.status).toBe(201);
    expect(Object.keys(reply.body as object)).toEqual([
      '_id',
      'title',
      'views',
      'when',
      'meta',
      'isDeleted',
      'deletedAt',
      'createdAt',
      'updatedAt',
    ]);
    expect(reply.body).toMatchObject({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      views: 0,
      when: '2026-01-31T22:00:00.000Z',
      isDeleted: false,
      deletedAt: null,
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    const read = await call('get', `posts/${reply.body._id}`).expect(200);
    expect(read.body).toEqual(reply.body);
  });

  it('stores any JSON object as it is in a flexible collection', async () => {
    const body = { a: null, b: [1, { c: [] }], d: 'text', e: 1.5, f: {}, '': 0, when: '2026-01-01' };
    const document = await inserted(body, 'anything');
    expect(document).toMatchObject(body);
    expect((await call('get', `anything/${document._id}`)).body).toEqual(document);
  });

  it.each<[string, unknown, unknown]>([
    ['title', '', ''],
    ['title', '  as given ', '  as given '],
    ['views', 0, 0],
    ['views', -1.5, -1.5],
    ['live', false, false],
    ['when', '2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['when', '2026-01-31t22:00:00.1239z', '2026-01-31T22:00:00.123Z'],
    ['free', {}, {}],
    ['free', { any: [1, null] }, { any: [1, null] }],
    ['list', [], []],
    ['list', [1, 'a', null], [1, 'a', null]],
    ['author', '64b7f0c2a1b2c3d4e5f60718', '64b7f0c2a1b2c3d4e5f60718'],
  ])('takes as %s: %j', async (name, given, stored) => {
    expect((await inserted({ title: 'a', [name]: given }))[name]).toEqual(stored);
  });

  it.each<[string, string, unknown[]]>([
    ['title', 'String', [true, ['a']]],
    ['views', 'Number', [true]],
    ['live', 'Boolean', ['true', 0]],
    ['when', 'Date', [1_700_000_000_000, 'yesterday', '', '2023-02-29', '1900-02-29', '2026-13-01', '2026-00-10']],
    ['when', 'Date', ['2026-04-31', '2026-1-1', '2026-01-01T10:00:00', '2026-01-01T24:00:00Z', ' 2026-01-01']],
    ['when', 'Date', ['2026-01-01T10:60:00Z', '2026-01-01T10:00:00+24:00', '0000-01-01T00:00:00+10:00']],
    ['when', 'Date', ['9999-12-31T23:59:59-10:00']],
    ['free', 'Object', [[], 'x']],
    ['list', 'Array', [{}, 'x']],
    ['author', 'Ref', ['64b7f0c2a1b2c3d4e5f6071', '64b7f0c2a1b2c3d4e5f6071g', 5]],
  ])('refuses as %s, a %s: %j', async (name, type, values) => {
    for (const value of values) {
      const reply = await insert({ title: 'a', [name]: value });
      const message = `${name} must be a ${type}`;
      expect([reply.status, reply.body.details]).toEqual([400, [{ field: name, rule: 'type', message }]]);
    }
  });

  it('names nested values by their path and lists every problem, fifty at most', async () => {
    const { name } = await buildCollection(test.app, owner.project, {
      fields: [
        ...FIELDS.filter((field) => ['meta', 'tags', 'when'].includes(field.name)),
        {
          ...{ name: 'lines', type: 'Array' },
          items: { type: 'Object', fields: [{ name: 'qty', type: 'Number', required: true }] },
        },
      ],
    });
    const body = {
      meta: { count: 'many', x: 1 },
      when: 'soon',
      tags: ['a', 5, null],
      lines: [{ qty: 1 }, {}],
      titel: 1,
    };
    const { details } = (await insert(body, name).expect(400)).body as { details: { field: string; rule: string }[] };
    expect(details.map(({ field, rule }) => `${field} ${rule}`).sort()).toEqual([
      ...['lines.1.qty required', 'meta.count type', 'meta.lang required', 'meta.x unknown', 'tags.1 type'],
      ...['tags.2 type', 'titel unknown', 'when type'],
    ]);
    const many = await insert({ tags: Array(10_000).fill(1) }, name).expect(400);
    expect(many.body.details).toHaveLength(50);
  });

  it('takes system fields that say what the document gets anyway, and no others', async () => {
    const _id = '64b7f0c2a1b2c3d4e5f60719';
    expect(await inserted({ title: 'a', _id, isDeleted: false, deletedAt: null })).toMatchObject({ _id });
    const others = { isDeleted: true, deletedAt: '2026-01-01', createdAt: '2026-01-01', updatedAt: null, _bsvc: {} };
    for (const [name, value] of Object.entries(others)) {
      const reply = await insert({ title: 'a', [name]: value });
      expect([reply.status, reply.body.details]).toMatchObject([400, [{ field: name, rule: 'system' }]]);
      await insert({ [name]: value }, 'anything').expect(400);
    }
  });

  const wrong: [string, object][] = [
    ['title is required', {}],
    ['title is required', { title: null }],
    ['title must be a String', { title: 5 }],
    ['views must be a Number', { title: 'a', views: '5' }],
    ['live must be a Boolean', { title: 'a', live: 1 }],
    ['when must be a Date', { title: 'a', when: '2026-02-30' }],
    ['author must be a Ref', { title: 'a', author: 'nobody' }],
    ['tags must be a Array', { title: 'a', tags: 'x' }],
    ['tags.1 must be a String', { title: 'a', tags: ['x', 1] }],
    ['meta must be a Object', { title: 'a', meta: [] }],
    ['meta.lang is required', { title: 'a', meta: {} }],
    ['titel is not a field of this collection', { title: 'a', titel: 'typo' }],
    ['isDeleted is set by the service', { title: 'a', isDeleted: true }],
  ];
  it.each(wrong)('answers 400: %s', async (text, body) => {
    const before = await countStored(posts);
    const reply = await insert(body);
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({
      success: false,
      data: {},
      message: `Validation failed: ${text}`,
      error: `Validation failed: ${text}`,
      code: 'VALIDATION_FAILED',
      details: [{ message: text }],
    });
    expect(await countStored(posts)).toBe(before);
  });

  const hostile: [string, string, string][] = [
    ['malformed JSON', '{"title":', 'INVALID_JSON'],
    ['an array', '[]', 'INVALID_BODY'],
    ['null', 'null', 'INVALID_BODY'],
    ['a text', '"x"', 'INVALID_BODY'],
    ['an operator', '{"title":{"$gt":""}}', 'INVALID_BODY'],
    ['a dotted key', '{"meta.lang":"x"}', 'INVALID_BODY'],
    ['__proto__', '{"title":"a","__proto__":{"admin":true}}', 'INVALID_BODY'],
    ['constructor', '{"title":"a","free":{"constructor":{"prototype":{"admin":true}}}}', 'INVALID_BODY'],
    ['_bsontype', '{"title":{"_bsontype":"ObjectId"}}', 'INVALID_BODY'],
    ['an operator inside', '{"a":[{"$gt":""}]}', 'INVALID_BODY'],
    ['a dotted key inside', '{"a":{"b.c":1}}', 'INVALID_BODY'],
    ['__proto__ inside', '{"a":{"__proto__":{"admin":true}}}', 'INVALID_BODY'],
    ['prototype inside an array', '{"a":[{"prototype":1}]}', 'INVALID_BODY'],
    ['a NUL in a key', '{"a\\u0000b":1}', 'INVALID_BODY'],
    ['half a surrogate pair', '{"a":"\\ud800"}', 'INVALID_BODY'],
    ['half a surrogate pair as a key', '{"\\udc00":1}', 'INVALID_BODY'],
    ['33 levels', nested(33), 'INVALID_BODY'],
    ['5,000 levels', nested(5_000), 'INVALID_BODY'],
    ['a number beyond the range', '{"title":"a","views":1e999}', 'INVALID_BODY'],
    ['no body', '', 'INVALID_BODY'],
  ];
  it('takes 32 levels', async () => {
    await call('post', 'anything').set('content-type', 'application/json').send(nested(32)).expect(201);
  });

  it.each(hostile)('refuses %s with 400 and stores nothing', async (_what, text, code) => {
    for (const collection of [posts, flexible]) {
      const before = await countStored(collection);
      const reply = await call('post', collection.name).set('content-type', 'application/json').send(text);
      expect([reply.status, reply.body.code]).toEqual([400, code]);
      expect(await countStored(collection)).toBe(before);
    }
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
  });

  it('refuses a body of 2 MB with 413', async () => {
    const reply = await insert({ text: 'x'.repeat(2_000_000) }, 'anything');
    expect([reply.status, reply.body.success]).toEqual([413, false]);
  });

  it('answers 404 for a collection that is not registered', async () => {
    const reply = await insert({ a: 1 }, 'nowhere');
    expect([reply.status, reply.body.code]).toEqual([404, 'COLLECTION_NOT_FOUND']);
  });

  it('lets one of a hundred concurrent inserts of a unique value win', async () => {
    const replies = await Promise.all(
      Array.from({ length: AT_ONCE }, () =>
        fetch(`${test.url}/api/data/posts`, {
          method: 'POST',
          headers: { 'x-api-key': owner.secret, 'content-type': 'application/json' },
          body: JSON.stringify({ title: 'race', slug: 'the-only-one' }),
        }),
      ),
    );
    const statuses = replies.map(({ status }) => status).sort((a, b) => a - b);
    expect(statuses).toEqual([201, ...Array.from({ length: AT_ONCE - 1 }, () => 409)]);
    const refused = await replies.find(({ status }) => status === 409)!.json();
    expect(refused).toMatchObject({
      success: false,
      code: 'DUPLICATE_VALUE',
      message: 'Duplicate value: another document has the same slug',
      details: [{ field: 'slug', rule: 'unique' }],
    });
    expect(await documentStore(test.app, posts).countDocuments({ slug: 'the-only-one' })).toBe(1);
  });

  it('lets many documents lack a unique field', async () => {
    await inserted({ title: 'no slug' });
    await inserted({ title: 'no slug', slug: null });
  });
});

describe.each(['put', 'patch'] as const)('%s /api/data/:collectionName/:id', (method) => {
  const change = (id: string, body: object, collection = 'posts') => call(method, `${collection}/${id}`).send(body);

  it('changes the given fields, keeps the others and answers the document', async () => {
    const before = await inserted({ title: 'a', tags: ['x'], meta: { lang: 'de', count: 1 } });
    const reply = await change(before._id, { title: 'b', 'meta.count': 2 });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      message: 'Updated',
      data: { ...before, title: 'b', meta: { lang: 'de', count: 2 }, updatedAt: expect.any(String) },
    });
    expect((await call('get', `posts/${before._id}`)).body).toEqual(reply.body.data);
  });

  it('takes a fetched document back', async () => {
    const before = await inserted({ title: 'a', when: '2026-01-01' });
    const { data } = (await change(before._id, before)).body as { data: object };
    expect(data).toEqual({ ...before, updatedAt: expect.any(String) });
  });

  it('refuses system fields with other values than the stored ones', async () => {
    const { _id } = await inserted({ title: 'a' });
    for (const body of [
      { _id: '0123456789abcdef01234567' },
      { createdAt: '2020-01-01T00:00:00Z' },
      { updatedAt: '2020-01-01T00:00:00Z' },
      { isDeleted: true },
      { 'isDeleted.x': 1 },
      { deletedAt: '2020-01-01T00:00:00Z' },
    ]) {
      const reply = await change(_id, body);
      expect([reply.status, reply.body.details[0].rule]).toEqual([400, 'system']);
    }
  });

  it('clears an optional field with null, then finds no value to be unique', async () => {
    const before = await inserted({ title: 'a', slug: `clear-${method}`, meta: { lang: 'de', count: 1 } });
    const reply = await change(before._id, { slug: null, 'meta.count': null });
    expect(reply.body.data).not.toHaveProperty('slug');
    expect(reply.body.data.meta).toEqual({ lang: 'de' });
    await inserted({ title: 'b', slug: `clear-${method}` });
  });

  it('holds the required fields of an object that a dotted key would create', async () => {
    const { _id } = await inserted({ title: 'a' });
    const refused = await change(_id, { 'meta.count': 1 });
    expect([refused.status, refused.body.message]).toEqual([400, 'Validation failed: meta.lang is required']);
    const made = await change(_id, { 'meta.count': 1, 'meta.lang': 'de' });
    expect(made.body.data.meta).toEqual({ count: 1, lang: 'de' });
    expect((await change(_id, { 'meta.count': 2 })).status).toBe(200);
  });

  it('changes items that are there, and no others', async () => {
    const { _id } = await inserted({ title: 'a', tags: ['x', 'y'] });
    expect((await change(_id, { 'tags.1': 'z' })).body.data.tags).toEqual(['x', 'z']);
    for (const body of [{ 'tags.2': 'far' }, { 'tags.900': 'far' }]) {
      const reply = await change(_id, body);
      expect([reply.status, reply.body.details[0].rule]).toEqual([400, 'position']);
    }
    const none = await inserted({ title: 'no tags' });
    expect((await change(none._id, { 'tags.0': 'x' })).status).toBe(400);
    expect((await call('get', `posts/${none._id}`)).body).not.toHaveProperty('tags');
  });

  it('answers 400 for a path through something that is not an object', async () => {
    const { _id } = await inserted({ a: 'text', n: null, list: [1, { b: 1 }], o: { b: 1 } }, 'anything');
    for (const [path, parent] of [
      ['a.b', 'a'],
      ['n.b', 'n'],
      ['list.b', 'list'],
      ['list.0.b', 'list.0'],
      ['o.b.c.d', 'o.b'],
    ] as const) {
      const reply = await change(_id, { [path]: 1 }, 'anything');
      expect([reply.status, reply.body.message]).toEqual([
        400,
        `Validation failed: ${path} cannot be set: ${parent} is not an object`,
      ]);
    }
    const padded = await change(_id, { 'list.100000': 1 }, 'anything');
    expect([padded.status, padded.body.details[0].rule]).toEqual([400, 'position']);
    const fine = await change(_id, { 'list.1.b': 2, 'o.x.y': 1, 'new.0': 'key' }, 'anything');
    expect(fine.body.data).toMatchObject({ list: [1, { b: 2 }], o: { b: 1, x: { y: 1 } }, new: { 0: 'key' } });
  });

  it.each([
    ['{}', 'INVALID_BODY'],
    ['[]', 'INVALID_BODY'],
    ['{"$set":{"title":"x"}}', 'INVALID_BODY'],
    ['{"free.$where":1}', 'INVALID_BODY'],
    ['{"free.__proto__.admin":true}', 'INVALID_BODY'],
    ['{"free":{"a":1},"free.b":1}', 'INVALID_BODY'],
    ['{"title":null}', 'VALIDATION_FAILED'],
    ['{"titel":"x"}', 'VALIDATION_FAILED'],
    ['{"title.x":"x"}', 'VALIDATION_FAILED'],
    ['{"meta.lang":5}', 'VALIDATION_FAILED'],
  ])('refuses the body %s with 400 and changes nothing', async (text, code) => {
    const before = await inserted({ title: 'a', meta: { lang: 'de' } });
    const reply = await call(method, `posts/${before._id}`).set('content-type', 'application/json').send(text);
    expect([reply.status, reply.body.code]).toEqual([400, code]);
    expect((await call('get', `posts/${before._id}`)).body).toEqual(before);
  });

  it('answers 413 when the document would grow too large by many changes, and keeps it as it is', async () => {
    const { _id } = await inserted({ a: 1 }, 'anything');
    const part = 'x'.repeat(300_000);
    let status = 200;
    let parts = 0;
    for (; status === 200 && parts < 20; parts++) {
      const reply = await change(_id, { [`part${parts}`]: part }, 'anything');
      status = reply.status;
      if (status !== 200) expect(reply.body.code).toBe('DOCUMENT_TOO_LARGE');
    }
    expect([status, parts]).toEqual([413, 7]);
    const { body } = await call('get', `anything/${_id}`);
    expect(body).toHaveProperty('part5');
    expect(body).not.toHaveProperty('part6');
    await change(_id, { part0: 'short', part1: 'short' }, 'anything').expect(200);
    await change(_id, { part6: part }, 'anything').expect(200);
  });

  it('answers 400 for an id of another form, 404 for an unknown or trashed one', async () => {
    for (const id of ['1', 'zzzzzzzzzzzzzzzzzzzzzzzz', '0123456789abcdef012345678']) {
      expect((await change(id, { title: 'b' })).body.code).toBe('INVALID_ID');
    }
    expect((await change('0123456789abcdef01234567', { title: 'b' })).body.code).toBe('DOCUMENT_NOT_FOUND');
    const { _id } = await inserted({ title: 'a' });
    await call('delete', `posts/${_id}`).expect(200);
    expect((await change(_id, { title: 'b' })).status).toBe(404);
  });

  it('answers 409 for a taken unique value and changes nothing', async () => {
    await inserted({ title: 'a', slug: `taken-${method}` });
    const other = await inserted({ title: 'b' });
    const reply = await change(other._id, { title: 'c', slug: `taken-${method}` });
    expect([reply.status, reply.body.code]).toEqual([409, 'DUPLICATE_VALUE']);
    expect((await call('get', `posts/${other._id}`)).body.title).toBe('b');
  });

  it('loses none of a hundred concurrent changes of different nested keys', async () => {
    const { _id } = await inserted({ title: 'a', free: {} });
    const replies = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, at) =>
        fetch(`${test.url}/api/data/posts/${_id}`, {
          method: method.toUpperCase(),
          headers: { 'x-api-key': owner.secret, 'content-type': 'application/json' },
          body: JSON.stringify({ [`free.k${at}`]: at }),
        }),
      ),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    const { free } = (await call('get', `posts/${_id}`)).body as { free: Record<string, number> };
    expect(Object.keys(free)).toHaveLength(AT_ONCE);
    expect(Object.entries(free).every(([key, value]) => key === `k${value}`)).toBe(true);
  });
});

describe('DELETE /api/data/:collectionName/:id', () => {
  it('moves the document to the trash, where only include_deleted sees it', async () => {
    const { _id } = await inserted({ title: 'a' });
    const reply = await call('delete', `posts/${_id}`);
    expect([reply.status, reply.body]).toEqual([
      200,
      { success: true, data: { id: _id }, message: 'Document moved to trash' },
    ]);
    expect((await call('get', `posts/${_id}`)).body.code).toBe('DOCUMENT_NOT_FOUND');
    const seen = await call('get', `posts/${_id}?include_deleted=true`);
    expect(seen.body).toMatchObject({ _id, isDeleted: true, deletedAt: expect.any(String) });
    expect((await call('delete', `posts/${_id}`)).status).toBe(404);
  });

  it('removes the document for good with permanent=true, from the trash too', async () => {
    const first = await inserted({ title: 'a' });
    const reply = await call('delete', `posts/${first._id}?permanent=true`);
    expect(reply.body).toEqual({
      success: true,
      data: { id: first._id },
      message: 'Document permanently deleted',
    });
    const second = await inserted({ title: 'b' });
    await call('delete', `posts/${second._id}`);
    await call('delete', `posts/${second._id}?permanent=true`).expect(200);
    for (const { _id } of [first, second]) {
      expect((await call('get', `posts/${_id}?include_deleted=true`)).status).toBe(404);
      expect((await call('delete', `posts/${_id}?permanent=true`)).status).toBe(404);
    }
  });

  it('refuses any other value of permanent', async () => {
    const { _id } = await inserted({ title: 'a' });
    const reply = await call('delete', `posts/${_id}?permanent=yes`);
    expect([reply.status, reply.body.code]).toEqual([400, 'INVALID_QUERY']);
    await call('get', `posts/${_id}`).expect(200);
  });

  it('leaves a trashed value free for another document', async () => {
    const { _id } = await inserted({ title: 'a', slug: 'recycled' });
    await call('delete', `posts/${_id}`);
    await inserted({ title: 'b', slug: 'recycled' });
  });
});

describe('PATCH /api/data/:collectionName/:id/recover', () => {
  it('takes the document out of the trash', async () => {
    const before = await inserted({ title: 'a' });
    await call('delete', `posts/${before._id}`);
    const reply = await call('patch', `posts/${before._id}/recover`);
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        success: true,
        data: { ...before, updatedAt: expect.any(String) },
        message: 'Document recovered from trash',
      },
    ]);
    await call('get', `posts/${before._id}`).expect(200);
  });

  it('answers 404 for a document that is not in the trash, 409 when its unique value is taken by now', async () => {
    const { _id } = await inserted({ title: 'a', slug: 'contested' });
    expect((await call('patch', `posts/${_id}/recover`)).body.code).toBe('DOCUMENT_NOT_FOUND');
    await call('delete', `posts/${_id}`);
    await inserted({ title: 'b', slug: 'contested' });
    const reply = await call('patch', `posts/${_id}/recover`);
    expect([reply.status, reply.body.details[0].field]).toEqual([409, 'slug']);
    expect((await call('patch', 'posts/0123456789abcdef01234567/recover')).status).toBe(404);
  });
});

describe('the users collection', () => {
  it.each([
    'users',
    'Users',
    'USERS',
    '%75sers',
    '%55SERS',
    'users_archive',
    'users/64b7f0c2a1b2c3d4e5f60718',
    'users/aggregate',
    'users/a/b/c/d',
  ])('is closed at /api/data/%s for every key and method', async (path) => {
    for (const key of [owner.secret, owner.publishable]) {
      for (const method of ['get', 'post', 'put', 'patch', 'delete'] as const) {
        const reply = await request(test.server)[method](`/api/data/${path}`).set('x-api-key', key);
        expect([reply.status, reply.body.code]).toEqual([403, 'USERS_BLOCKED']);
      }
    }
    const unknown = await request(test.server).get(`/api/data/${path}`);
    expect([unknown.status, unknown.body.code]).toEqual([401, 'API_KEY_MISSING']);
  });
});

describe('the API key', () => {
  const keyOf = (key: string) =>
    request(test.server).post('/api/data/posts').set('x-api-key', key).send({ title: 'a' });

  it('is needed', async () => {
    const reply = await request(test.server).post('/api/data/posts').send({ title: 'a' });
    expect([reply.status, reply.body.code]).toEqual([401, 'API_KEY_MISSING']);
  });

  it.each(['', 'x', 'sk_test_abc', 'Bearer sk_live_x'])('of the form %j is no key', async (key) => {
    expect((await keyOf(key)).status).toBe(401);
  });

  it('that is unknown is refused', async () => {
    const reply = await keyOf(`sk_live_${'A'.repeat(43)}`);
    expect([reply.status, reply.body.code]).toEqual([401, 'API_KEY_INVALID']);
  });
});
