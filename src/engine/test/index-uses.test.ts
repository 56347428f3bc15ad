import { rmSync } from 'node:fs';
import type { Document } from 'bson';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DataCollection, type DataDb, type Engine, openEngine } from '../index.js';
import { temporaryDir } from './transports.js';
import { openSeed } from './helpers/seed.js';

const SEED = openSeed('uses of indexes');
const RUNS = Number(process.env['BSVC_TEST_RUNS'] ?? 40);
const DOCUMENTS = 12_000;
/** More documents than any list: what stands behind it is not handed to the collection. */
const BARRIER = { $limit: 1_000_000 };

describe('an index serves', () => {
  const dataDir = temporaryDir();
  let engine: Engine;
  let db: DataDb;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- documents of any shape
  let items: DataCollection<any>;
  let longReads = 0;

  beforeAll(async () => {
    engine = openEngine({ dataDir, durability: 'relaxed' });
    engine.onLongRead = () => void longReads++;
    db = engine.db('uses');
    items = db.collection('items');
    const partialFilterExpression = { isDeleted: false };
    await items.createIndexes([
      { key: { cat: 1, n: -1, _id: -1 }, name: 'cat', partialFilterExpression },
      { key: { n: -1, _id: -1 }, name: 'n', partialFilterExpression },
      { key: { opt: 1, _id: 1 }, name: 'opt', partialFilterExpression },
      { key: { 'meta.lang': 1 }, name: 'lang' },
      { key: { tags: 1 }, name: 'tags' },
    ]);
    const docs = Array.from({ length: DOCUMENTS }, (_, n) => ({
      _id: n,
      ...(n % 11 === 0 ? {} : { cat: n % 13 === 0 ? null : `c${String(n % 4)}` }),
      n: n % 500,
      ...(n % 10 === 0 ? {} : { opt: n % 30 === 1 ? null : n % 7 }),
      isDeleted: n % 1000 === 3,
      meta: n % 9 === 0 ? {} : { lang: ['de', 'en', 'fr'][n % 3] },
      tags: [`t${String(n % 3)}`, `t${String(n % 5)}`].slice(0, n % 3),
    }));
    await items.insertMany(docs);
  });

  beforeEach(() => {
    longReads = 0;
  });

  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const value = fc.constantFrom<unknown>('c0', 'c1', 'c3', 'none', null, 3, 'de', 't1');
  const path = fc.constantFrom('cat', 'opt', 'n', 'meta.lang', 'tags', 'isDeleted', '_id');
  const condition = fc.oneof(
    fc.tuple(path, value).map(([at, one]): Document => ({ [at]: one })),
    fc.tuple(path, value).map(([at, one]): Document => ({ [at]: { $ne: one } })),
    fc.tuple(path, fc.array(value, { maxLength: 3 })).map(([at, list]): Document => ({ [at]: { $nin: list } })),
    fc.tuple(path, fc.boolean()).map(([at, flag]): Document => ({ [at]: { $exists: flag } })),
    fc.tuple(path, value).map(([at, one]): Document => ({ $expr: { $eq: [`$${at}`, { $literal: one }] } })),
    fc.constant<Document>({ $expr: { $and: [{ $eq: ['c1', '$cat'] }, { $gt: ['$n', 480] }] } }),
    fc.constant<Document>({ n: { $gte: 490 } }),
  );
  const filter = fc
    .tuple(fc.boolean(), fc.array(condition, { minLength: 1, maxLength: 2 }))
    .map(([active, conditions]): Document => ({ $and: [...(active ? [{ isDeleted: false }] : []), ...conditions] }));

  const aggregate = (stages: Document[]): Promise<Document[]> => items.aggregate(stages).toArray();

  it('counts of what is not, what is there, and what an expression says', async () => {
    let few = 0;
    await fc.assert(
      fc.asyncProperty(filter, async (one) => {
        const before = longReads;
        const counted = await items.countDocuments(one);
        if (longReads === before) few++;
        const [all] = await aggregate([BARRIER, { $match: one }, { $count: 'n' }]);
        expect(counted).toBe((all?.['n'] as number | undefined) ?? 0);
      }),
      { seed: SEED, numRuns: RUNS },
    );
    expect(few).toBeGreaterThan(RUNS / 5);
  });

  it.each<Document>([
    { isDeleted: false, cat: { $ne: 'c1' } },
    { $and: [{ isDeleted: false }, { n: { $nin: [3, 4] } }] },
    { isDeleted: false, opt: { $exists: true } },
    { isDeleted: false, opt: { $exists: false } },
    { isDeleted: false, $expr: { $eq: ['$cat', 'c1'] } },
  ])('a count of %o without a look at everything', async (one) => {
    const [all] = await aggregate([BARRIER, { $match: one }, { $count: 'n' }]);
    longReads = 0;
    expect(await items.countDocuments(one)).toBe(all!['n']);
    expect(longReads).toBe(0);
  });

  it('a filter behind stages that leave its fields alone, with the same answers', async () => {
    const stage = fc.constantFrom<Document>(
      { $addFields: { total: { $add: ['$n', 1] } } },
      { $set: { cat: 'c1' } },
      { $set: { 'meta.x': 1 } },
      { $unset: 'opt' },
      { $project: { cat: 1, n: 1, tags: true } },
      { $project: { meta: 0 } },
      { $project: { _id: 0, opt: 1, 'meta.lang': 1 } },
      { $project: { cat: '$n', opt: 1 } },
      { $sort: { n: -1, _id: 1 } },
    );
    let some = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(stage, { minLength: 1, maxLength: 3 }), filter, async (stages, one) => {
        const tail = [{ $sort: { _id: 1, n: 1 } }, { $limit: 50 }];
        const expected = await aggregate([...stages, BARRIER, { $match: one }, ...tail]);
        const found = await aggregate([...stages, { $match: one }, ...tail]);
        if (expected.every((doc) => '_id' in doc)) expect(found).toEqual(expected);
        else expect(found.length).toBe(expected.length);
        if (found.length > 0) some++;
      }),
      { seed: SEED, numRuns: Math.ceil(RUNS / 3) },
    );
    expect(some).toBeGreaterThan(RUNS / 20);
  });

  it.each<Document[]>([
    [{ $match: { isDeleted: false } }, { $addFields: { x: 1 } }, { $match: { cat: 'c3', n: 3 } }],
    [{ $match: { isDeleted: false } }, { $project: { cat: 1, n: 1 } }, { $match: { cat: 'c3', n: 3 } }],
    [{ $match: { isDeleted: false } }, { $sort: { opt: 1 } }, { $match: { cat: 'c3', n: 3 } }],
    [{ $match: { isDeleted: false } }, { $group: { _id: '$cat' } }],
    [{ $match: { isDeleted: false } }, { $unset: ['meta', 'opt'] }, { $group: { _id: '$cat' } }],
    [{ $match: { isDeleted: false } }, { $group: { _id: '$n' } }, { $sort: { _id: 1 } }],
  ])('the pipeline %o without a look at everything', async (...stages) => {
    const explained = (await db.command({
      explain: { aggregate: 'items', pipeline: stages, cursor: {} },
    })) as unknown as {
      executionStats: { totalDocsExamined: number };
    };
    expect(explained.executionStats.totalDocsExamined).toBeLessThanOrEqual(1000);
    expect((await aggregate(stages)).length).toBeGreaterThan(0);
    expect(longReads).toBe(0);
  });

  it('a $group by a field, with the groups that all documents make', async () => {
    await fc.assert(
      fc.asyncProperty(fc.option(filter), path, async (one, at) => {
        const match = one === null ? [] : [{ $match: one }];
        const group = [{ $unset: 'opt' }, { $group: { _id: `$${at}` } }, { $sort: { _id: 1 } }, { $limit: 300 }];
        expect(await aggregate([...match, ...group])).toEqual(await aggregate([...match, BARRIER, ...group]));
      }),
      { seed: SEED, numRuns: Math.ceil(RUNS / 3) },
    );
  });
});
