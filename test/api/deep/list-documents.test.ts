import request from 'supertest';
import { describe, expect, it } from 'vitest';
import type { Collection } from '../../world/collections.js';
import { buildCollection, buildProject, placeDocuments, storedDocuments } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const START = Date.parse('2026-11-01T00:00:00Z');

const place = (collection: Collection, documents: Record<string, unknown>[]) =>
  placeDocuments(test.app, collection, documents, START);

const test = await useTestApp();
const shop = await buildProject(test.app);
const items = await buildCollection(test.app, shop.project, {
  name: 'items',
  fields: [
    { name: 'title', type: 'String', unique: true },
    { name: 'price', type: 'Number' },
    { name: 'live', type: 'Boolean' },
    { name: 'since', type: 'Date' },
    { name: 'tags', type: 'Array', items: { type: 'String' } },
    { name: 'size', type: 'Object', fields: [{ name: 'width', type: 'Number' }] },
  ],
});
await place(
  items,
  Array.from({ length: 45 }, (_, at) => ({
    title: `item ${at}`,
    price: at % 10,
    live: at % 2 === 0,
    since: new Date(START + at * 1000),
    tags: at % 3 === 0 ? ['third', `t${at}`] : [],
    size: { width: at },
  })),
);
await place(items, [{ title: 'trashed', price: 1, isDeleted: true, deletedAt: new Date(START) }]);
await place(items, [{ title: 'pending', price: 1, isDeleted: 'removed' }]);

const get = (path: string, key = shop.publishable) =>
  request(test.server).get(`/api/data/${path}`).set('x-api-key', key);
const titles = async (query: string): Promise<string[]> => {
  const reply = await get(`items?${query}`).expect(200);
  return (reply.body as { data: { items: { title: string }[] } }).data.items.map(({ title }) => title);
};
const numbers = (from: number, to: number): string[] =>
  Array.from({ length: Math.abs(to - from) + 1 }, (_, at) => `item ${from < to ? from + at : from - at}`);

describe('GET /api/data/:collectionName', () => {
  it('answers the newest twenty in the envelope, without trash and unfinished bulk inserts', async () => {
    const { body } = await get('items').expect(200);
    expect(body).toMatchObject({
      success: true,
      data: { total: 45, page: 1, limit: 20, nextCursor: null },
      message: 'Documents fetched',
    });
    expect(Object.keys(body.data)).toEqual(['items', 'total', 'page', 'nextCursor', 'limit']);
    expect(body.data.items.map(({ title }: { title: string }) => title)).toEqual(numbers(44, 25));
    expect(body.data.items[0]).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      title: 'item 44',
      price: 4,
      live: true,
      since: '2026-11-01T00:00:44.000Z',
      tags: [],
      size: { width: 44 },
      isDeleted: false,
      deletedAt: null,
      createdAt: '2026-11-01T00:00:44.000Z',
      updatedAt: '2026-11-01T00:00:44.000Z',
    });
  });

  it('pages by page and limit, and answers an empty page beyond the end', async () => {
    expect(await titles('page=3')).toEqual(numbers(4, 0));
    expect(await titles('page=2&limit=5')).toEqual(numbers(39, 35));
    expect(await titles('skip=43')).toEqual(numbers(1, 0));
    const { body } = await get('items?page=1000000000').expect(200);
    expect(body.data).toEqual({ items: [], total: 45, page: 1_000_000_000, nextCursor: null, limit: 20 });
  });

  it('takes a limit above 1000 as 1000 and says so', async () => {
    const { body } = await get('items?limit=100000').expect(200);
    expect(body.data.limit).toBe(1000);
    expect(body.data.items).toHaveLength(45);
  });

  it('includes the trash on request, never unfinished bulk inserts', async () => {
    expect((await get('items?include_deleted=true').expect(200)).body.data.total).toBe(46);
    expect(await titles('title=trashed')).toEqual([]);
    expect(await titles('title=trashed&include_deleted=true')).toEqual(['trashed']);
    expect(await titles('title=pending&include_deleted=true')).toEqual([]);
    expect(await titles('include_deleted=only')).toEqual(['trashed']);
    expect((await get('items?include_deleted=only&count=true').expect(200)).body.data).toEqual({ count: 1 });
    expect((await get('items?include_deleted=only&cursor=start&limit=1').expect(200)).body.data).toMatchObject({
      total: 1,
    });
    await get('items?include_deleted=some').expect(400);
  });

  it.each([
    ['price=3&sort=title:asc', ['item 13', 'item 23', 'item 3', 'item 33', 'item 43']],
    ['price_gt=8&sort=createdAt', ['item 9', 'item 19', 'item 29', 'item 39']],
    ['price_gte=9&live_ne=true&sort=createdAt', ['item 9', 'item 19', 'item 29', 'item 39']],
    ['price_lt=1&sort=-since&limit=2', ['item 40', 'item 30']],
    ['price_lte=0&price_gte=0&sort=size.width&limit=2', ['item 0', 'item 10']],
    ['title_in=item 1,item%202', ['item 2', 'item 1']],
    ['title_in=item 1&title_in=item 2', ['item 2', 'item 1']],
    ['title_regex=^ITEM [12]$', ['item 2', 'item 1']],
    ['tags=third&limit=1&sort=createdAt', ['item 0']],
    ['since_gte=2026-11-01T00:00:43Z', ['item 44', 'item 43']],
    ['size.width=7', ['item 7']],
    ['filter[size.width]=7&filter[price_lt]=100', ['item 7']],
    ['live=true&price=8&sort=-price,createdAt&limit=2', ['item 8', 'item 18']],
  ])('filters and sorts by %s', async (query, expected) => {
    expect(await titles(query)).toEqual(expected);
  });

  it('counts', async () => {
    const { body } = await get('items?count=true&live=true').expect(200);
    expect(body).toEqual({ success: true, data: { count: 23 }, message: 'Documents counted' });
  });

  it('shows only the named fields, and leaves out system fields on request', async () => {
    const named = await get('items?fields=title,size.width&limit=1').expect(200);
    expect(named.body.data.items).toEqual([{ _id: expect.any(String), title: 'item 44', size: { width: 44 } }]);
    const plain = await get('items?meta=false&limit=1').expect(200);
    expect(Object.keys(plain.body.data.items[0])).toEqual(['_id', 'title', 'price', 'live', 'since', 'tags', 'size']);
  });

  it.each([
    ['limit=-5', 400, 'INVALID_QUERY', 'limit must be a whole number of at least 1'],
    ['page=1e9', 400, 'INVALID_QUERY', 'page must be a whole number of at least 1'],
    ['$where=sleep(10000)', 400, 'INVALID_QUERY', '"$where" is not a valid filter'],
    ['price[$ne]=1', 400, 'INVALID_QUERY', '"price[$ne]" is not a valid filter'],
    ['filter[$where]=1', 400, 'INVALID_QUERY', '"$where" is not a valid filter'],
    ['filter[price][$ne]=1', 400, 'INVALID_QUERY', '"price][$ne" is not a valid filter'],
    ['filter[isDeleted]=true', 400, 'INVALID_QUERY', 'isDeleted and deletedAt cannot be filtered by'],
    ['sort=$where', 400, 'INVALID_QUERY', 'sort: "$where" is not a field'],
    ['title_regex=(a%2B)%2B$', 400, 'INVALID_QUERY', 'title_regex could take too long'],
    ['title_regex=(a|a)*$', 400, 'INVALID_QUERY', 'title_regex could take too long'],
    ['colour=red', 400, 'INVALID_QUERY', 'Unknown field "colour"'],
    ['price=cheap', 400, 'INVALID_QUERY', 'price must be a number, not "cheap"'],
    ['isDeleted=true', 400, 'INVALID_QUERY', 'isDeleted and deletedAt cannot be filtered by'],
    ['cursor=forged.forged', 400, 'INVALID_CURSOR', 'cursor is not valid for this list'],
    ['populate=title', 400, 'INVALID_QUERY', 'populate: "title" is not a declared Ref field'],
  ])('answers %s with %i', async (query, status, code, text) => {
    const { body } = await get(`items?${query}`).expect(status);
    expect(body).toMatchObject({ success: false, data: {}, code });
    expect(body.message).toContain(text);
    expect(body.error).toBe(body.message);
  });

  it('answers 404 for a collection that is not registered, 401 without a key', async () => {
    await get('nothing').expect(404);
    const { body } = await request(test.server).get('/api/data/items').expect(401);
    expect(body.code).toBe('API_KEY_MISSING');
  });

  it('answers 400 when two sorted fields hold arrays in one document', async () => {
    const mixed = await buildCollection(test.app, shop.project, { name: 'parallel' });
    await place(mixed, [
      { a: [1, 2], b: [3, 4] },
      { a: 1, b: 2 },
    ]);
    const { body } = await get('parallel?sort=a,b').expect(400);
    expect(body.message).toBe('sort: some document holds arrays in more than one of the sorted fields');
  });
});

describe('paging by cursor', () => {
  interface CursorBody {
    data: {
      items: { _id: string; title?: string }[];
      total: number;
      cursor: string;
      nextCursor: string | null;
      limit: number;
    };
  }
  const walk = async (path: string, between: () => Promise<unknown> = () => Promise.resolve()): Promise<string[]> => {
    const seen: string[] = [];
    let cursor: string | null = 'start';
    while (cursor !== null) {
      const { body } = (await get(`${path}&cursor=${cursor}`).expect(200)) as { body: CursorBody };
      seen.push(...body.data.items.map(({ _id }) => _id));
      cursor = body.data.nextCursor;
      await between();
    }
    return seen;
  };
  const allOf = async (path: string): Promise<string[]> =>
    ((await get(`${path}&limit=1000`).expect(200)).body as CursorBody).data.items.map(({ _id }) => _id);

  it('answers cursor and nextCursor instead of a page', async () => {
    const first = (await get('items?cursor=&limit=40').expect(200)).body as CursorBody;
    expect(Object.keys(first.data)).toEqual(['items', 'total', 'cursor', 'nextCursor', 'limit']);
    expect(first.data).toMatchObject({ total: 45, cursor: 'start', limit: 40, nextCursor: expect.any(String) });
    const second = (await get(`items?limit=40&cursor=${first.data.nextCursor}`).expect(200)).body as CursorBody;
    expect(second.data).toMatchObject({ total: 45, cursor: first.data.nextCursor, nextCursor: null });
    expect(second.data.items.map(({ title }) => title)).toEqual(numbers(4, 0));
  });

  it('carries the total of its beginning on, and counts anew on request', async () => {
    const growing = await buildCollection(test.app, shop.project, { name: 'growing' });
    await place(
      growing,
      Array.from({ length: 10 }, (_, n) => ({ n })),
    );
    const page = async (query: string): Promise<CursorBody['data']> =>
      ((await get(`growing?limit=4&sort=n&n_lt=100&${query}`).expect(200)).body as CursorBody).data;
    const first = await page('cursor=start');
    expect(first.total).toBe(10);
    await place(growing, [{ n: 50 }]);
    const second = await page(`cursor=${first.nextCursor}`);
    expect(second.total).toBe(10);
    expect((await page(`cursor=${second.nextCursor}`)).total).toBe(10);
    expect((await page(`cursor=${second.nextCursor}&count=true`)).total).toBe(11);
    expect((await page('cursor=start')).total).toBe(11);
  });

  it.each([
    'sort=title',
    'sort=-price',
    'sort=price,-title',
    'sort=tags',
    'sort=-size.width',
    'sort=_id',
    'price_gt=3',
    'fields=title&sort=price',
  ])('walks all of ?%s in order', async (query) => {
    expect(await walk(`items?${query}&limit=7`)).toEqual(await allOf(`items?${query}`));
  });

  it('walks any mixture of types, each document once', async () => {
    const mixed = await buildCollection(test.app, shop.project, { name: 'mixed' });
    const values = [
      null,
      0,
      -1,
      1.5,
      'a',
      'B',
      '',
      '😀',
      '\uffff',
      true,
      false,
      new Date(START),
      [],
      [1, 'x'],
      [null],
      ['b', 2],
      [[1]],
      [[], 3],
      { a: 1 },
      { a: 2 },
      {},
      [{ a: 1 }],
      new Date(0),
      10,
      '10',
    ];
    await place(mixed, [...values.map((v) => ({ v })), {}, {}, { v: { deep: [1] } }]);
    for (const sort of ['v', '-v', 'v,-createdAt', '-v,_id', 'v.a', '-v.a']) {
      for (const limit of [1, 2, 5]) {
        expect(await walk(`mixed?sort=${sort}&limit=${limit}`), `${sort} by ${limit}`).toEqual(
          await allOf(`mixed?sort=${sort}`),
        );
      }
    }
  });

  it('neither repeats nor skips what was there throughout, while documents come and go', async () => {
    const busy = await buildCollection(test.app, shop.project, { name: 'busy' });
    await place(
      busy,
      Array.from({ length: 60 }, (_, at) => ({ n: at % 7, stays: true })),
    );
    for (const sort of ['n', '-n', '-createdAt', 'n,-createdAt']) {
      await place(
        busy,
        Array.from({ length: 40 }, (_, at) => ({ n: at % 7, stays: false })),
      );
      const stays = await allOf(`busy?stays=true&sort=${sort}`);
      let turn = 0;
      const seen = await walk(`busy?sort=${sort}&limit=7`, async () => {
        turn++;
        if (turn < 12)
          await place(
            busy,
            Array.from({ length: 3 }, (_, at) => ({ n: (turn + at) % 7, stays: false })),
          );
        await storedDocuments(test.app, busy).deleteOne({ stays: false });
        await storedDocuments(test.app, busy).deleteOne({ stays: false, n: turn % 7 });
      });
      expect(new Set(seen).size).toBe(seen.length);
      const staying = new Set(stays);
      expect(seen.filter((id) => staying.has(id))).toEqual(stays);
      await storedDocuments(test.app, busy).deleteMany({ stays: false });
    }
  });

  it('refuses to make a cursor of values too long for a request line', async () => {
    const long = await buildCollection(test.app, shop.project, { name: 'long' });
    await place(long, [{ text: 'x'.repeat(5000) }, { text: 'y' }]);
    const { body } = await get('long?sort=text&cursor=start&limit=1').expect(400);
    expect(body.message).toContain('too long to page by cursor');
  });
});
