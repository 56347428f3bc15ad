import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, parseFieldSpec } from '../world/collections.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { openDataClient, serverOf, userOf } from '../helpers/data-client.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);
const server = openDataClient(test, serverOf(owner));
const ANN = new ObjectId().toHexString();
const BOB = new ObjectId().toHexString();
const as = (user: string) => openDataClient(test, userOf(test, owner, user));

const build = (specs: string[], more: object = {}): Promise<Collection> =>
  buildCollection(test.app, owner.project, { fields: specs.map(parseFieldSpec), ...more });
const countOf = (collection: Collection) => storedDocuments(test.app, collection).countDocuments({});

const batch = (operations: object[]) =>
  request(test.server).post('/api/batch').set(serverOf(owner)).send({ operations });

/** Status and code of an upsert, with what it answers. */
async function upsert(send: typeof server, collection: Collection, by: string, body: object, headers: object = {}) {
  const response = await send('post', `${collection.name}?upsert=${by}`, body, headers);
  const answer = response.body as Record<string, unknown>;
  return { said: [response.status, response.ok ? '' : answer.code].filter(Boolean).join(' '), answer };
}

describe('POST /api/data/:collection?upsert', () => {
  it('inserts the first time, and updates the given fields from then on', async () => {
    const posts = await build(['slug:String&', 'title:String!', 'views:Number=0']);
    const first = await upsert(server, posts, 'slug', { slug: 'a', title: 'A' });
    expect(first).toMatchObject({ said: '201', answer: { slug: 'a', title: 'A', views: 0 } });
    const second = await upsert(server, posts, 'slug', { slug: 'a', views: 5 });
    expect(second).toMatchObject({ said: '200', answer: { _id: first.answer._id, title: 'A', views: 5 } });
    expect(await upsert(server, posts, 'slug', { slug: 'b', views: 1 })).toMatchObject({
      said: '400 VALIDATION_FAILED',
    });
    const meant = { 'if-match': '"2026-01-01T00:00:00.000Z"' };
    const refused = await upsert(server, posts, 'slug', { slug: 'a', views: 6 }, meant);
    expect([refused.said, await countOf(posts)]).toEqual(['400 INVALID_IF_MATCH', 1]);
  });

  it('finds the document by what is stored: trimmed, in lower case, without regard to case, as a date', async () => {
    const things = await build(['code:String{trim,lowercase}&', 'name:String@nocase&', 'day:Date&', 'n:Number']);
    await upsert(server, things, 'code', { code: 'ab', name: 'Ann', day: '2026-01-02', n: 0 });
    for (const [by, body] of [
      ['code', { code: ' AB ', n: 1 }],
      ['name', { name: 'ANN', n: 2 }],
      ['day', { day: '2026-01-02T00:00:00Z', n: 3 }],
    ] as const) {
      expect(await upsert(server, things, by, body)).toMatchObject({ said: '200', answer: { n: body.n } });
    }
    expect(await countOf(things)).toBe(1);
  });

  it('takes a set of fields in any order, with the stamp of the user who is signed in', async () => {
    const votes = await build(['post:String', 'user:String=user.id', 'stars:Number'], {
      uniques: [['post', 'user']],
      rules: { read: 'anyone', create: 'user', update: 'doc.user = user.id' },
    });
    for (const [user, stars, said] of [
      [ANN, 1, '201'],
      [ANN, 2, '200'],
      [BOB, 3, '201'],
      [ANN, 4, '200'],
    ] as const) {
      expect(await upsert(as(user), votes, 'user,post', { post: 'p', stars })).toMatchObject({
        said,
        answer: { stars },
      });
    }
    expect(await countOf(votes)).toBe(2);
  });

  it('refuses fields that do not name one document, and a key without a value', async () => {
    const posts = await build(['slug:String&', 'board:String', 'at:Number', 'status:String'], {
      uniques: [['board', 'at'], { fields: ['board', 'status'], where: { status: 'open' } }],
    });
    const loose = await buildCollection(test.app, owner.project, { mode: 'flexible' });
    for (const by of [
      'board',
      'nothing',
      'slug,board',
      'board,status',
      '_id',
      'createdAt',
      '',
      'slug,slug',
      '__proto__',
    ]) {
      expect([by, (await upsert(server, posts, by, { slug: 'a', board: 'b', at: 1, status: 'open' })).said]).toEqual([
        by,
        '400 INVALID_KEY',
      ]);
    }
    const long = await upsert(server, posts, 'slug,'.repeat(1000), { slug: 'a' });
    expect(String(long.answer.message).length).toBeLessThan(200);
    expect(await upsert(server, loose, 'slug', { slug: 'a' })).toMatchObject({ said: '400 INVALID_KEY' });
    expect(await upsert(server, posts, 'slug&upsert=slug', { slug: 'a' })).toMatchObject({ said: '400 INVALID_QUERY' });
    for (const slug of [undefined, null, {}, ['a'], 7]) {
      const refused = await upsert(server, posts, 'slug', { slug, board: 'b' });
      expect(refused).toMatchObject({ said: '400 VALIDATION_FAILED', answer: { details: [{ field: 'slug' }] } });
    }
    expect((await upsert(server, posts, 'board,at', { at: 1 })).answer.details).toMatchObject([{ field: 'board' }]);
    expect(await countOf(posts)).toBe(0);
  });

  it('follows the rule of what it comes to, and tells nothing of documents that the writer may not read', async () => {
    const pages = await build(['slug:String&', 'text:String', 'by:String=user.id', 'open:Boolean'], {
      rules: { read: 'doc.open = true or doc.by = user.id', create: 'user', update: 'doc.by = user.id' },
    });
    await upsert(as(ANN), pages, 'slug', { slug: 'shown', open: true });
    await upsert(as(ANN), pages, 'slug', { slug: 'kept', open: false });
    expect((await upsert(as(BOB), pages, 'slug', { slug: 'shown', text: 'x' })).said).toBe('403 RULE_REFUSED');
    const [found, inserted] = [
      await upsert(as(BOB), pages, 'slug', { slug: 'kept', text: 'x' }),
      await as(BOB)('post', `${pages.name}`, { slug: 'kept', text: 'x' }),
    ];
    expect(found.said).toBe('409 DUPLICATE_VALUE');
    expect({ ...found.answer, requestId: 0 }).toEqual({ ...(inserted.body as object), requestId: 0 });
    const without = await build(['slug:String&', 'by:String=user.id', 'n:Number!', 'm:Number{max:9}'], {
      rules: { read: 'doc.by = user.id', create: 'nobody', update: 'doc.by = user.id' },
    });
    await server('post', without.name, { slug: 'kept', by: ANN, n: 1 });
    const anonymous = openDataClient(test, { 'x-api-key': owner.publishable });
    for (const more of [
      { n: 1 },
      {},
      { n: null },
      { m: 10 },
      { 'm.x': 1 },
      { _id: BOB, n: 1 },
      { by: ANN, n: 1 },
      { $inc: 1 },
    ]) {
      for (const send of [as(BOB), anonymous]) {
        const [there, gone] = [
          await upsert(send, without, 'slug', { slug: 'kept', ...more }),
          await upsert(send, without, 'slug', { slug: 'none', ...more }),
        ];
        expect({ ...there.answer, requestId: 0 }).toEqual({ ...gone.answer, requestId: 0 });
      }
    }
    expect((await upsert(as(ANN), pages, 'slug', { slug: 'kept', text: 'y' })).said).toBe('200');
    expect((await upsert(as(BOB), pages, 'slug', { slug: 'own', text: 'z' })).said).toBe('201');
  });

  it('takes back what its writer has read, another’s stamp included', async () => {
    const pages = await build(['slug:String&', 'text:String', 'by:String=user.id@fixed'], {
      rules: { read: 'user', create: 'user', update: 'user' },
    });
    const { answer } = await upsert(as(ANN), pages, 'slug', { slug: 'a', text: 'x' });
    expect(answer).toMatchObject({ by: ANN });
    const { slug, by } = answer;
    expect(await upsert(as(BOB), pages, 'slug', { slug, by, text: 'y' })).toMatchObject({
      said: '200',
      answer: { by: ANN, text: 'y' },
    });
    expect((await upsert(as(BOB), pages, 'slug', { slug: 'b', by: ANN })).said).toBe('403 FIELD_FIXED');
  });

  it('asks somebody unknown to sign in before it says what is wrong', async () => {
    const pages = await build(['slug:String&', 'open:Boolean'], {
      rules: { read: 'anyone', create: 'user', update: 'user' },
    });
    const anonymous = openDataClient(test, { 'x-api-key': owner.publishable });
    expect((await upsert(anonymous, pages, 'slug', { slug: 5 })).said).toBe('401 AUTH_REQUIRED');
  });

  it('is one write: forty at once lead to one document, and each of them is done', async () => {
    const counts = await build(['slug:String&', 'n:Number', 'more:String']);
    const said = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => (await upsert(server, counts, 'slug', { slug: 'one', n })).said),
    );
    expect(said.sort()).toEqual([...Array<string>(39).fill('200'), '201']);
    expect(await countOf(counts)).toBe(1);
  });

  it('ends as one after the other, whatever comes in between', async () => {
    const random = openRandom(openSeed('upserts'));
    const things = await build(['slug:String&', 'n:Number']);
    for (let round = 0; round < 20; round++) {
      const slug = `s${round}`;
      const steps = Array.from({ length: 6 }, (_, n) => async () => {
        if (random.below(3) > 0) return (await upsert(server, things, 'slug', { slug, n })).said;
        const { body } = await server('get', `${things.name}?slug=${slug}`);
        const [found] = (body as { data: { items: { _id: string }[] } }).data.items;
        if (found) await server('delete', `${things.name}/${found._id}`);
        return 'removed';
      });
      const said = await Promise.all(steps.map((step) => step()));
      expect(said.filter((each) => !['200', '201', 'removed', '409 DOCUMENT_CHANGING'].includes(each))).toEqual([]);
      const { body } = await server('get', `${things.name}?slug=${slug}`);
      expect((body as { data: { items: unknown[] } }).data.items.length).toBeLessThanOrEqual(1);
    }
  });

  it('is done once with an idempotency key, and makes a new document of one in the trash', async () => {
    const things = await build(['slug:String&', 'n:Number']);
    const again = { 'idempotency-key': 'k'.repeat(20) };
    const first = await upsert(server, things, 'slug', { slug: 'a', n: 1 }, again);
    await upsert(server, things, 'slug', { slug: 'a', n: 2 });
    expect(await upsert(server, things, 'slug', { slug: 'a', n: 1 }, again)).toMatchObject({
      said: '200',
      answer: { _id: first.answer._id, n: 2 },
    });
    expect((await upsert(server, things, 'slug', { slug: 'a', n: 3 }, again)).said).toBe('422 IDEMPOTENCY_KEY_REUSED');
    await server('delete', `${things.name}/${String(first.answer._id)}`);
    expect((await upsert(server, things, 'slug', { slug: 'a', n: 4 })).said).toBe('201');
  });
});

describe('an upsert in a batch', () => {
  it('sees what came before it in the batch', async () => {
    const things = await build(['slug:String&', 'n:Number', 'm:Number']);
    const { name: collection } = things;
    const kept = await upsert(server, things, 'slug', { slug: 'kept', n: 0 });
    const id = String(kept.answer._id);
    const { body, status } = await batch([
      { op: 'insert', collection, body: { slug: 'a', n: 1 } },
      { op: 'upsert', collection, by: ['slug'], body: { slug: 'a', m: 1 } },
      { op: 'upsert', collection, by: ['slug'], body: { slug: 'b', n: 2 } },
      { op: 'upsert', collection, by: ['slug'], body: { slug: 'b', m: 2 } },
      { op: 'upsert', collection, by: ['slug'], body: { slug: 'kept', m: 3 } },
      { op: 'remove', collection, id },
      { op: 'upsert', collection, by: ['slug'], body: { slug: 'kept', n: 4 } },
    ]);
    expect(status).toBe(200);
    const { results } = (body as { data: { results: { id: string; document: object | null }[] } }).data;
    expect(results[1]).toMatchObject({ id: results[0]!.id, document: { n: 1, m: 1 } });
    expect(results[3]).toMatchObject({ id: results[2]!.id, document: { n: 2, m: 2 } });
    expect(results[4]).toMatchObject({ id, document: { n: 0, m: 3 } });
    expect(results[6]!.id).not.toBe(id);
    expect(results[6]!.document).toMatchObject({ slug: 'kept', n: 4 });
  });

  it('goes by the keys that earlier operations have given, taken and brought back', async () => {
    const things = await build(['slug:String&', 'n:Number', 'title:String!']);
    const { name: collection } = things;
    const [moved, back, gone] = await Promise.all(
      ['a', 'c', 'e'].map(async (slug) =>
        String((await upsert(server, things, 'slug', { slug, n: 0, title: 'x' })).answer._id),
      ),
    );
    await server('delete', `${collection}/${back}`);
    const by = (slug: string, n: number, more: object = {}) => ({
      ...{ op: 'upsert', collection, by: ['slug'] },
      body: { slug, n, ...more },
    });
    // An update needs none.
    const fresh = { title: 'y' };
    const { body, status } = await batch([
      { op: 'update', collection, id: moved, body: { slug: 'b' } },
      by('b', 1),
      by('a', 2, fresh),
      { op: 'recover', collection, id: back },
      by('c', 3),
      { op: 'remove', collection, id: gone },
      by('e', 4, fresh),
      by('a', 5),
    ]);
    expect([status, (body as { message: string }).message]).toEqual([200, 'All operations are carried out']);
    const { results } = (body as { data: { results: { id: string; document: { n: number } }[] } }).data;
    const ids = results.map(({ id }) => id);
    expect(ids.map((id) => [moved, back, gone].indexOf(id))).toEqual([0, 0, -1, 1, 1, 2, -1, -1]);
    expect(ids[7]).toBe(ids[2]);
    const listed = (await server('get', `${collection}?sort=slug`)).body as { data: { items: { n: number }[] } };
    expect(listed.data.items.map(({ n }) => n)).toEqual([5, 1, 3, 4]);
  });

  it('is whole while others insert the same', async () => {
    const things = await build(['slug:String&', 'n:Number']);
    const { name: collection } = things;
    const operations = ['x', 'y', 'z'].map((slug) => ({
      op: 'upsert',
      collection,
      by: ['slug'],
      body: { slug, n: 1 },
    }));
    const said = await Promise.all(Array.from({ length: 10 }, async () => (await batch(operations)).status));
    expect(said).toEqual(Array(10).fill(200));
    expect(await countOf(things)).toBe(3);
  });

  it.each([
    [{ op: 'upsert', body: { slug: 'a' } }, 'INVALID_BODY'],
    [{ op: 'insert', by: ['slug'], body: { slug: 'a' } }, 'INVALID_BODY'],
    [{ op: 'upsert', by: ['slug'], id: ANN, body: { slug: 'a' } }, 'INVALID_BODY'],
    [{ op: 'upsert', by: ['n'], body: { n: 1 } }, 'INVALID_KEY'],
    [{ op: 'upsert', by: ['slug'] }, 'VALIDATION_FAILED'],
  ])('is refused without a key that names one document: %j', async (operation, code) => {
    const things = await build(['slug:String&', 'n:Number']);
    const { body } = await batch([{ collection: things.name, ...operation }]);
    expect(body).toMatchObject({ code, details: [{ index: 0 }] });
  });
});
