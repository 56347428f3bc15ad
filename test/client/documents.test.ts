import { describe, expect, it } from 'vitest';
import { ApiError, createClient } from '../world/client.js';
import { setChanges } from '../world/collections.js';
import { FEED_PARAMETERS, RESERVED_KEYS } from '../world/documents.js';
import { createProject } from '../world/projects.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, { name: 'authors', mode: 'flexible' });
await buildCollection(test.app, shop.project, {
  name: 'posts',
  fields: [
    { name: 'title', type: 'String', required: true, unique: true },
    { name: 'views', type: 'Number', default: 0 },
    { name: 'at', type: 'Date' },
    { name: 'author', type: 'Ref', ref: 'authors' },
    { name: 'meta', type: 'Object', fields: [{ name: 'score', type: 'Number' }] },
  ],
});
const api = createClient({ url: test.url, key: shop.secret });

const refusal = (work: Promise<unknown>): Promise<ApiError> =>
  work.then(
    () => Promise.reject(new Error('it was not refused')),
    (error: unknown) => error as ApiError,
  );

/** `fetch` whose first answers to a method are lost on the way, after the server has done its work. */
function losing(method: string, count = 1): typeof fetch {
  let left = count;
  return async (address, init) => {
    const response = await fetch(address, init);
    if (init?.method !== method || left-- <= 0) return response;
    await response.arrayBuffer();
    throw new TypeError('fetch failed');
  };
}

describe('collection(name) of the client', () => {
  it('inserts, gets, changes, trashes and recovers documents', async () => {
    const posts = api.collection('posts');
    const made = await posts.insert({ title: 'one', at: new Date(0), meta: { score: 1 } });
    expect(made).toMatchObject({ title: 'one', views: 0, at: '1970-01-01T00:00:00.000Z' });
    const changed = await posts.update(made._id, { 'meta.score': 2, at: null });
    expect(changed.meta).toEqual({ score: 2 });
    expect(changed).not.toHaveProperty('at');
    await posts.remove(made._id);
    expect((await refusal(posts.get(made._id))).code).toBe('DOCUMENT_NOT_FOUND');
    expect((await posts.get(made._id, { includeDeleted: true })).isDeleted).toBe(true);
    expect((await posts.recover(made._id)).isDeleted).toBe(false);
    expect(await posts.get(made._id)).toMatchObject({ title: 'one' });
    await posts.remove(made._id, { permanent: true });
    expect((await refusal(posts.get(made._id, { includeDeleted: true }))).status).toBe(404);
  });

  it('lists by filters of every kind, sorted, in parts, with the documents that are referred to', async () => {
    const { _id: author } = await api.collection('authors').insert({ name: 'Ann' });
    const posts = api.collection('posts');
    const ids = await posts.insertMany([
      { title: 'a,b', views: 1, at: new Date(1000), author },
      { title: 'c', views: 2, at: new Date(2000) },
      { title: 'd&e=f', views: 3, at: new Date(3000), meta: { score: 7 } },
    ]);
    expect(ids).toHaveLength(3);
    const titles = async (filter: object) =>
      (await posts.list({ filter, sort: 'views' })).items.map(({ title }) => title as string);
    expect(await titles({ views_gte: 2 })).toEqual(['c', 'd&e=f']);
    expect(await titles({ title: 'd&e=f' })).toEqual(['d&e=f']);
    expect(await titles({ title_in: ['a,b'] })).toEqual(['a,b']);
    expect(await titles({ title_in: ['a,b', 'c'] })).toEqual(['a,b', 'c']);
    expect(await titles({ at_lt: new Date(2000) })).toEqual(['a,b']);
    expect(await titles({ 'meta.score_exists': true })).toEqual(['d&e=f']);
    expect(await titles({ title_regex: '^[CD]' })).toEqual(['c', 'd&e=f']);
    const page = await posts.list({ fields: ['author'], populate: ['author'], limit: 1, sort: ['views', 'title'] });
    expect(page).toMatchObject({ items: [{ author: { _id: author, name: 'Ann' } }], total: 3, limit: 1 });
    expect(Object.keys(page.items[0]!)).toEqual(expect.not.arrayContaining(['title']));
    expect(await posts.count({ views_gt: 1 })).toBe(2);
    const walked: string[] = [];
    for await (const post of posts.iterate({ sort: '-views', limit: 2 })) walked.push(post.title as string);
    expect(walked).toEqual(['d&e=f', 'c', 'a,b']);
    expect(await posts.aggregate([{ $group: { _id: null, sum: { $sum: '$views' } } }])).toEqual([
      { _id: null, sum: 6 },
    ]);
  });

  it('filters by fields that are named like what a query says otherwise', async () => {
    const names = [...RESERVED_KEYS, ...FEED_PARAMETERS, 'ticket'];
    const fields = names.map((name) => ({ name, type: 'String' as const }));
    const { name: books } = await buildCollection(test.app, shop.project, { name: 'books', fields });
    await setChanges(test.app, shop.project._id, books, { on: true });
    const collection = api.collection(books);
    const ids = await collection.insertMany(
      ['2,3', 'x'].map((text) => Object.fromEntries(names.map((n) => [n, text]))),
    );
    for (const name of names) {
      for (const filter of [{ [name]: '2,3' }, { [name]: ['2,3'] }]) {
        expect(
          (await collection.list({ filter })).items.map(({ _id }) => _id),
          name,
        ).toEqual([ids[0]]);
        expect(await collection.count(filter), name).toBe(1);
        expect(
          (await collection.changes({ filter })).items.map(({ id }) => id),
          name,
        ).toEqual([ids[0]]);
      }
      const shown = new Promise<unknown[]>((resolve) => {
        const stop = collection.follow.set(
          { filter: { [name]: 'x' }, onError: (error) => resolve([error]) },
          (list) => {
            setTimeout(() => stop());
            resolve(list.map(({ _id }) => _id));
          },
        );
      });
      expect(await shown, name).toEqual([ids[1]]);
    }
  });

  it('refuses a filter that would silently be none, and an id or a name that would be another address', async () => {
    const posts = api.collection('posts');
    const { userId } = {} as { userId?: string };
    const wrong = [{ title: userId }, { title: null }, { title_in: [] }] as { title?: string }[];
    for (const filter of wrong)
      expect(await refusal(posts.list({ filter }))).toMatchObject({ status: 400, code: 'INVALID_QUERY' });
    for (const text of ['', '.', '..']) {
      const calls = [posts.get(text), posts.update(text, {}), posts.remove(text), posts.recover(text)];
      for (const call of calls) expect((await refusal(call)).code).toBe('INVALID_ID');
      for (const call of [api.auth.publicProfile(text), api.auth.socialUrl(text)]) {
        expect((await refusal(call)).code).toBe('INVALID_NAME');
      }
      expect(() => api.collection(text)).toThrow(ApiError);
    }
  });

  it('throws one kind of error, with what the service says', async () => {
    const error = await refusal(api.collection('posts').insert({ views: 'many' }));
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ name: 'ApiError', status: 400, code: 'VALIDATION_FAILED' });
    expect(error.message).toBe('Validation failed: title is required');
    expect(error.details.map(({ field }) => field)).toEqual(['title', 'views']);
    expect(error.requestId).toMatch(/\S/);
    const away = createClient({ url: 'http://127.0.0.1:9', key: shop.secret, retries: 0 });
    expect(await refusal(away.collection('posts').list())).toMatchObject({ status: 0, code: 'NETWORK' });
  });

  it('does each write once when its answer was lost', async () => {
    const client = (method: string) =>
      createClient({ url: test.url, key: shop.secret, fetch: losing(method, 2) }).collection('authors');
    const name = 'written once';
    const { _id } = await client('POST').insert({ name });
    await client('POST').insertMany([{ name }, { name }]);
    expect(await api.collection('authors').count({ name })).toBe(3);
    expect(await client('PATCH').update(_id, { name, n: 1 })).toMatchObject({ n: 1 });
    await client('DELETE').remove(_id);
    expect(await api.collection('authors').count({ name })).toBe(2);
    expect(await client('PATCH').recover(_id)).toMatchObject({ _id, isDeleted: false });
    // What was never there is told, lost answers or not.
    expect((await refusal(client('PATCH').remove('0'.repeat(24)))).code).toBe('DOCUMENT_NOT_FOUND');
  });

  it('waits as long as the service says, and not for ever', async () => {
    let calls = 0;
    const busy =
      (retryAfter: string, times: number): typeof fetch =>
      async (address, init) => {
        if (calls++ >= times) return fetch(address, init);
        return Response.json(
          { message: 'Busy', code: 'BUSY' },
          { status: 503, headers: { 'retry-after': retryAfter } },
        );
      };
    const ask = (retryAfter: string, times: number) => {
      calls = 0;
      return createClient({ url: test.url, key: shop.secret, fetch: busy(retryAfter, times) })
        .collection('authors')
        .count();
    };
    await ask('0', 2);
    expect(calls).toBe(3);
    const error = await refusal(ask('600', 1));
    expect([error.retryAfter, calls]).toEqual([600, 1]);
  });

  it('sends a mail once when its answer was lost', async () => {
    const { project, keys } = await createProject(test.app, { name: 'mailing' });
    const mail = { to: 'ann@example.test', subject: 'Hi', text: 'Hello' };
    const open = (request: typeof fetch) => createClient({ url: test.url, key: keys!.secret, fetch: request });
    expect(await open(losing('POST', 2)).mail.send(mail)).toMatchObject({ monthlyUsage: 1 });
    expect(await open(fetch).mail.send(mail)).toMatchObject({ monthlyUsage: 2 });
    expect(project.name).toBe('mailing');
  });
});
