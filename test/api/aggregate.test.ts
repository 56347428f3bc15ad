import { ObjectId } from 'bson';
import fc from 'fast-check';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, defaultUsersCollection } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject, placeDocuments, type TestProject } from '../helpers/build-project.js';
import { runs } from '../helpers/runs.js';
import { useTestApp } from '../helpers/use.js';

const ME = new ObjectId().toHexString();
const SOMEONE = new ObjectId().toHexString();
const CANARY = 'canary that nobody may see';

const ids = { ann: new ObjectId(), bob: new ObjectId(), first: new ObjectId(), second: new ObjectId() };

const test = await useTestApp({ constants: { aggregateLimit: 50 } });
const shop = await buildProject(test.app);
const token = signAccessToken(test.app, shop.project, ME, 600_000);
const { posts, authors, notes } = await buildShop(shop);
await placeDocuments(test.app, authors, [
  { _id: ids.ann, name: 'Ann', boss: ids.bob.toHexString(), born: new Date('1990-01-01T00:00:00Z') },
  { _id: ids.bob, name: 'Bob', born: new Date('1980-01-01T00:00:00Z') },
  { name: CANARY, isDeleted: true, deletedAt: new Date() },
  { name: CANARY, isDeleted: 'removed' },
]);
await placeDocuments(test.app, posts, [
  { _id: ids.first, title: 'one', views: 1, tags: ['a', 'b'], author: ids.ann.toHexString() },
  { _id: ids.second, title: 'two', views: 2, tags: ['b'], author: ids.bob.toHexString() },
  { title: 'three', views: 3, author: ids.ann.toHexString() },
  { title: CANARY, views: 100, author: ids.ann.toHexString(), isDeleted: true, deletedAt: new Date() },
]);
await placeDocuments(test.app, notes, [
  { text: 'mine', userId: ME },
  { text: CANARY, userId: SOMEONE },
  { text: CANARY, userId: ME, isDeleted: true, deletedAt: new Date() },
]);
await placeDocuments(test.app, defaultUsersCollection(shop.project._id), [{ email: CANARY, password: CANARY }]);
const stranger = await buildShop(await buildProject(test.app));
for (const [name, collection] of Object.entries(stranger)) {
  await placeDocuments(test.app, collection, [{ title: CANARY, text: CANARY, name: CANARY, userId: ME, from: name }]);
}

async function buildShop({ project }: TestProject): Promise<Record<'posts' | 'authors' | 'notes', Collection>> {
  return {
    posts: await buildCollection(test.app, project, {
      name: 'posts',
      fields: [
        { name: 'title', type: 'String' },
        { name: 'views', type: 'Number' },
        { name: 'tags', type: 'Array', items: { type: 'String' } },
        { name: 'author', type: 'Ref', ref: 'authors' },
      ],
    }),
    authors: await buildCollection(test.app, project, {
      name: 'authors',
      fields: [
        { name: 'name', type: 'String' },
        { name: 'boss', type: 'Ref', ref: 'authors' },
        { name: 'born', type: 'Date' },
      ],
    }),
    notes: await buildCollection(test.app, project, {
      name: 'notes',
      fields: [{ name: 'text', type: 'String' }],
      rls: { mode: 'private', ownerField: 'userId' },
    }),
  };
}

const post = (path: string, body: object, { key = shop.publishable, bearer = '' } = {}) =>
  request(test.server)
    .post(`/api/data/${path}`)
    .set({ 'x-api-key': key, ...(bearer && { authorization: `Bearer ${bearer}` }) })
    .send(body);
const run = async (name: string, pipeline: object[], who = {}, query = ''): Promise<Record<string, unknown>[]> => {
  const reply = await post(`${name}/aggregate${query}`, { pipeline }, who);
  expect(reply.body).toMatchObject({ success: true });
  return (reply.body as { data: Record<string, unknown>[] }).data;
};

describe('POST /api/data/:collectionName/aggregate', () => {
  it('answers the results in the envelope', async () => {
    const { body } = await post('posts/aggregate', {
      pipeline: [{ $match: { views: { $gt: 1 } } }, { $group: { _id: null, views: { $sum: '$views' } } }],
    }).expect(200);
    expect(body).toEqual({ success: true, data: [{ _id: null, views: 5 }], message: 'Aggregation completed' });
  });

  it('answers identifiers and dates as texts', async () => {
    const [ann] = await run('authors', [
      { $match: { name: 'Ann' } },
      { $project: { born: 1, n: { $toDecimal: '1.10' } } },
    ]);
    expect(ann).toEqual({ _id: ids.ann.toHexString(), born: '1990-01-01T00:00:00.000Z', n: '1.10' });
  });

  it('leaves out the trash unless asked for, and unfinished bulk inserts always', async () => {
    expect(await run('authors', [{ $count: 'n' }])).toEqual([{ n: 2 }]);
    expect(await run('authors', [{ $count: 'n' }], {}, '?include_deleted=true')).toEqual([{ n: 3 }]);
  });

  it('matches _id given as text, alone, in lists and in expressions', async () => {
    const first = ids.first.toHexString();
    for (const filter of [
      { _id: first },
      { _id: { $in: [first] } },
      { $and: [{ $or: [{ _id: { $eq: first } }] }] },
      { $expr: { $eq: ['$_id', first] } },
      { $expr: { $in: ['$_id', [first]] } },
    ]) {
      expect(await run('posts', [{ $match: filter }, { $project: { _id: 0, title: 1 } }])).toEqual([{ title: 'one' }]);
    }
  });

  it('compares Date fields with dates written as text', async () => {
    const pipeline = [{ $match: { born: { $lt: '1985-01-01' } } }, { $project: { _id: 0, name: 1 } }];
    expect(await run('authors', pipeline)).toEqual([{ name: 'Bob' }]);
  });

  it('joins Refs with the documents they name, in both directions', async () => {
    const joined = await run('posts', [
      { $match: { title: 'one' } },
      { $lookup: { from: 'authors', localField: 'author', foreignField: '_id', as: 'who' } },
      { $project: { _id: 0, 'who.name': 1 } },
    ]);
    expect(joined).toEqual([{ who: [{ name: 'Ann' }] }]);
    const back = await run('authors', [
      { $sort: { name: 1 } },
      { $lookup: { from: 'posts', localField: '_id', foreignField: 'author', as: 'posts' } },
      { $project: { _id: 0, name: 1, n: { $size: '$posts' } } },
    ]);
    expect(back).toEqual([
      { name: 'Ann', n: 2 },
      { name: 'Bob', n: 1 },
    ]);
  });

  it('does not show the hidden field through $$ROOT', async () => {
    const posts = await run('posts', [{ $replaceWith: { all: { $objectToArray: '$$ROOT' } } }]);
    expect(JSON.stringify(posts)).not.toContain('_bsvc');
  });

  it('restricts a private collection to the owner, directly and joined', async () => {
    expect(await run('notes', [{ $project: { _id: 0, text: 1 } }], { bearer: token })).toEqual([{ text: 'mine' }]);
    const union = [{ $limit: 1 }, { $unionWith: 'notes' }, { $match: { text: { $exists: true } } }, { $count: 'n' }];
    expect(await run('posts', union, { bearer: token })).toEqual([{ n: 1 }]);
    expect(await run('posts', union, { key: shop.secret })).toEqual([{ n: 2 }]);
    for (const path of ['notes', 'posts']) {
      const { body } = await post(`${path}/aggregate`, { pipeline: union }).expect(401);
      expect(body.code).toBe('AUTH_REQUIRED');
    }
  });

  it.each<[string, unknown, number, string]>([
    ['no pipeline', undefined, 400, 'INVALID_PIPELINE'],
    ['an empty pipeline', [], 400, 'INVALID_PIPELINE'],
    ['$out', [{ $out: 'x' }], 400, 'BLOCKED_STAGE'],
    ['$merge', [{ $match: {} }, { $merge: { into: 'posts' } }], 400, 'BLOCKED_STAGE'],
    [
      '$function inside $facet',
      [{ $facet: { a: [{ $set: { x: { $function: { body: 'x', args: [], lang: 'js' } } } }] } }],
      400,
      'BLOCKED_STAGE',
    ],
    ['$lookup into users', [{ $lookup: { from: 'users', pipeline: [], as: 'u' } }], 400, 'USERS_BLOCKED'],
    ['$unionWith users', [{ $unionWith: 'users' }], 400, 'USERS_BLOCKED'],
    ['an unknown collection', [{ $unionWith: 'nothing' }], 404, 'COLLECTION_NOT_FOUND'],
    ['a stored name', [{ $unionWith: 'collections' }], 404, 'COLLECTION_NOT_FOUND'],
    ['what the database refuses', [{ $project: { a: 1, b: 0 } }], 400, 'INVALID_PIPELINE'],
    ['an operator on the wrong type', [{ $project: { a: { $divide: ['$title', 2] } } }], 400, 'INVALID_PIPELINE'],
  ])('answers %s with an error', async (_, pipeline, status, code) => {
    const { body } = await post('posts/aggregate', { pipeline }).expect(status);
    expect(body).toMatchObject({ success: false, data: {}, code });
    expect(JSON.stringify(body)).not.toMatch(/documents_|Mongo/);
  });

  it('says of $search whose it is', async () => {
    const pipeline = [{ $search: { text: { query: 'a', path: 'title' } } }];
    const { body } = await post('posts/aggregate', { pipeline }).expect(400);
    expect(body).toMatchObject({
      code: 'INVALID_PIPELINE',
      message: '$search is not available: it belongs to MongoDB Atlas',
    });
  });

  it('answers 400 with a hint for more results than a reply may hold', async () => {
    const many = [{ $limit: 1 }, { $project: { n: { $range: [0, 51] } } }, { $unwind: '$n' }];
    const { body } = await post('posts/aggregate', { pipeline: many }).expect(400);
    expect(body).toMatchObject({
      code: 'RESULT_TOO_LARGE',
      message: 'The pipeline yields more than 50 documents: add a $limit stage, or group further',
    });
    expect(await run('posts', [...many, { $limit: 50 }])).toHaveLength(50);
  });
});

describe('a fuzzed pipeline', () => {
  const names = fc.constantFrom('posts', 'authors', 'notes', 'users', 'collections');
  const field = fc.constantFrom('title', 'name', 'text', 'userId', 'isDeleted', '_id', 'author', 'j');
  const expression = fc.oneof(
    field.map((name) => `$${name}`),
    fc.constantFrom<unknown>(
      '$$ROOT',
      '$$NOW',
      CANARY,
      ME,
      SOMEONE,
      1,
      true,
      { $objectToArray: '$$ROOT' },
      { $literal: '$title' },
      {
        $mergeObjects: ['$$ROOT', { isDeleted: false, userId: SOMEONE }],
      },
    ),
  );
  const filter = fc.oneof(
    fc.dictionary(
      field,
      fc.constantFrom<unknown>(true, false, 'pending', SOMEONE, { $exists: true }, { $ne: ME }, { $in: [true, false] }),
      { maxKeys: 2 },
    ),
    fc.record({ $or: fc.constant([{ isDeleted: true }, { isDeleted: false }]) }),
    fc.record({ $expr: fc.record({ $ne: fc.tuple(expression, expression) }) }),
  );
  const { stage } = fc.letrec<{ stage: object; stages: object[] }>((tie) => ({
    stages: fc.array(tie('stage'), { maxLength: 3 }),
    stage: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.record({ $match: filter }),
      fc.record({ $set: fc.dictionary(field, expression, { minKeys: 1, maxKeys: 2 }) }),
      fc.record({ $unset: field }),
      fc.record({ $replaceWith: fc.constantFrom('$$ROOT', { isDeleted: false, x: '$$ROOT' }) }),
      fc.record({ $group: fc.record({ _id: expression, all: fc.constant({ $push: '$$ROOT' }) }) }),
      fc.record({ $unionWith: fc.record({ coll: names, pipeline: tie('stages') }) }),
      fc.record({ $lookup: fc.record({ from: names, as: fc.constant('j'), pipeline: tie('stages') }) }),
      fc.record({ $lookup: fc.record({ from: names, as: field, localField: field, foreignField: field }) }),
      fc.record({
        $lookup: fc.record({ from: names, as: field, localField: field, foreignField: field, pipeline: tie('stages') }),
      }),
      fc.record({ $facet: fc.dictionary(fc.constantFrom('f', 'g'), tie('stages'), { minKeys: 1, maxKeys: 2 }) }),
      fc.record({
        $graphLookup: fc.record({
          from: names,
          startWith: expression,
          connectFromField: field,
          connectToField: field,
          as: fc.constant('j'),
          restrictSearchWithMatch: filter,
        }),
      }),
      fc.record({ $limit: fc.integer({ min: 1, max: 5 }) }),
    ),
  }));

  const PIPELINES = runs(300);

  it('never answers a document of another project, of users, of the trash or of another owner', async () => {
    const prototype = Object.getOwnPropertyNames(Object.prototype);
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('posts', 'authors', 'notes'),
        fc.array(stage, { minLength: 1, maxLength: 4 }),
        async (name, pipeline) => {
          // The text itself may stand in the client's own pipeline: only stored documents are looked for.
          const own = JSON.parse(JSON.stringify(pipeline).replaceAll(CANARY, 'constant')) as object[];
          const { status, body } = await post(`${name}/aggregate`, { pipeline: own }, { bearer: token });
          expect([200, 400, 404]).toContain(status);
          if (status === 200) answered++;
          expect(JSON.stringify(body)).not.toContain(CANARY);
        },
      ),
      { seed: 5, numRuns: PIPELINES },
    );
    expect(answered).toBeGreaterThan(PIPELINES / 4);
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(prototype);
  });
});
