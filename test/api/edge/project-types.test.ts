import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { editCollection } from '../../world/collections.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, {
  name: 'posts',
  fields: [{ name: 'title', type: 'String', required: true }],
});
await editCollection(test.app, shop.project._id, 'users', {
  addFields: [{ name: 'creditLimit', type: 'String', protected: true }],
});

const get = (path: string, key = shop.secret) => request(test.server).get(`/api/schemas/${path}`).set('x-api-key', key);

describe('GET /api/schemas/types.d.ts, openapi.json, schema.json', () => {
  it.each([
    ['types.d.ts', 'text/plain; charset=utf-8', 'export interface PostsDocument'],
    ['openapi.json', 'application/json; charset=utf-8', '"operationId":"listPostsDocuments"'],
    ['schema.json', 'application/json; charset=utf-8', '"PostsInsert": {'],
  ])('tell of the collections of the project whose key asks: %s', async (file, type, part) => {
    const { status, headers, text } = await get(file);
    expect([status, headers['content-type'], text.includes(part)]).toEqual([200, type, true]);
    const other = await buildProject(test.app);
    expect((await get(file, other.secret)).text).not.toContain('Posts');
    expect((await request(test.server).get(`/api/schemas/${file}`)).body.code).toBe('API_KEY_MISSING');
  });

  it.each(['types.d.ts', 'openapi.json?tag=Users', 'schema.json'])(
    'tell a publishable key nothing of protected fields: %s',
    async (file) => {
      expect((await get(file)).text).toMatch(/\bcreditLimit\b/);
      const { headers, text } = await get(file, shop.publishable);
      expect(text).not.toMatch(/\bcreditLimit\b/);
      // The same address answers another key something else.
      expect([headers['cache-control'], headers.vary]).toEqual([
        'private, no-cache',
        expect.stringContaining('x-api-key'),
      ]);
    },
  );

  it('tell of one tag in at most 40 KiB, and name the tags where there is none of this name', async () => {
    const { body } = await get('openapi.json');
    const tags = (body as { tags: { name: string }[] }).tags.map(({ name }) => name);
    expect(tags).toContain('Collection posts');
    for (const tag of tags) {
      const short = await get('openapi.json').query({ tag });
      expect([tag, short.status, Buffer.byteLength(short.text) <= 40 * 1024]).toEqual([tag, 200, true]);
    }
    for (const tag of ['nope', ''])
      expect([tag, (await get('openapi.json').query({ tag })).status]).toEqual([tag, 404]);
    const { status, body: refused } = await get('openapi.json').query({ tag: 'nope' });
    expect([status, refused.code, refused.message]).toEqual([
      404,
      'NOT_FOUND',
      expect.stringContaining('Collection posts'),
    ]);
  });

  it('tell of the two collections of the guide in at most 60 kB, and name the other tags', async () => {
    const guide = await buildProject(test.app);
    await buildCollection(test.app, guide.project, {
      name: 'lists',
      fields: [
        { name: 'title', type: 'String', required: true },
        { name: 'owner', type: 'String', stamp: 'user.id' },
        { name: 'members', type: 'Array', items: { type: 'Ref', ref: 'users' } },
      ],
      rules: { read: 'doc.owner = user.id or user.id in doc.members', create: 'doc.owner = user.id' },
    });
    await buildCollection(test.app, guide.project, {
      name: 'items',
      fields: [
        { name: 'list', type: 'Ref', ref: 'lists', required: true },
        { name: 'text', type: 'String', required: true },
        { name: 'done', type: 'Boolean', default: false },
      ],
      rules: { read: 'doc.list in lists[owner = user.id].id', create: 'doc.list in lists[owner = user.id].id' },
    });
    for (const key of [guide.secret, guide.publishable]) {
      const { text, body } = await get('openapi.json', key);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(60_000);
      expect((body as { info: { description: string } }).info.description).toContain('?tag=');
    }
  });

  it('answer the same bytes until a collection changes, and 304 to a client that has them', async () => {
    const first = await get('types.d.ts');
    expect((await get('types.d.ts')).text).toBe(first.text);
    const copy = get('types.d.ts').set('If-None-Match', first.headers.etag!);
    expect((await copy).status).toBe(304);
    await editCollection(test.app, shop.project._id, 'posts', { addFields: [{ name: 'views', type: 'Number' }] });
    const renewed = await get('types.d.ts').set('If-None-Match', first.headers.etag!);
    expect([renewed.status, renewed.text.includes('views?: number')]).toEqual([200, true]);
  });
});
