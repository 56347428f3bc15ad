import { describe, expect, it } from 'vitest';
import type { Doc } from '../../../codec/document.js';
import { openBudget } from '../../../pipeline/budget.js';
import { compilePipeline } from '../../../pipeline/compile.js';
import { openExpressionContext } from '../../../query/expression.js';
import { aggregate, openCollections } from '../../query/memory-collections.js';

const many = Array.from({ length: 20_000 }, (_, i): Doc => ({
  _id: i,
  k: i % 10,
  v: (i * 7919) % 20_000,
  s: `text ${String(i)}`,
}));

const NOTHING = { near: null, filter: null, sort: null, skip: 0, limit: null, distinct: null };

describe('what a pipeline leaves to its caller', () => {
  const leadingOf = (...stages: Doc[]) => compilePipeline(stages).leading;

  it('gives up filters, then a sort, then skip and limit', () => {
    expect(
      leadingOf(
        { $match: { a: 1 } },
        { $match: { b: 2 } },
        { $sort: { c: 1 } },
        { $skip: 2 },
        { $skip: 3 },
        { $limit: 9 },
        { $limit: 4 },
      ),
    ).toEqual({ ...NOTHING, filter: { $and: [{ a: 1 }, { b: 2 }] }, sort: { c: 1 }, skip: 5, limit: 4 });
    expect(leadingOf({ $limit: 5 }, { $match: { a: 1 } })).toMatchObject({
      filter: null,
      sort: null,
      skip: 0,
      limit: 5,
    });
    expect(leadingOf({ $limit: 5 }, { $skip: 1 })).toMatchObject({ skip: 0, limit: 5 });
    expect(leadingOf({ $project: { a: '$b' } }, { $match: { a: 1 } })).toMatchObject({ filter: null });
    expect(leadingOf({ $addFields: { x: 1 } }, { $match: { a: 1 } })).toMatchObject({ filter: { a: 1 } });
  });

  it('keeps what depends on variables of the command', () => {
    const environment = { ...openExpressionContext(), constants: new Map([['x', 2]]) };
    const { leading } = compilePipeline([{ $match: { a: 1, $expr: { $eq: ['$b', '$$x'] } } }], { environment });
    expect(leading).toEqual({ ...NOTHING, filter: { a: 1 } });
  });

  it('says which fields of the documents it needs', () => {
    const fieldsOf = (...stages: Doc[]) => compilePipeline(stages).fields;
    expect(fieldsOf({ $match: { a: 1 } }, { $group: { _id: '$k', n: { $sum: '$v.w' } } })).toEqual(new Set(['k', 'v']));
    expect(fieldsOf({ $addFields: { x: '$a' } }, { $match: { x: 1, b: 1 } }, { $project: { x: 1 } })).toEqual(
      new Set(['a', 'b', '_id', 'x']),
    );
    expect(fieldsOf({ $count: 'n' })).toEqual(new Set());
    expect(fieldsOf({ $match: { a: 1 } })).toBeNull();
    expect(fieldsOf({ $unwind: '$a' }, { $sortByCount: '$a.b' })).toEqual(new Set(['a']));
    expect(fieldsOf({ $group: { _id: null, docs: { $push: '$$ROOT' } } })).toBeNull();
    expect(fieldsOf({ $group: { _id: null, t: { $top: { sortBy: { s: 1 }, output: '$o' } } } })).toEqual(
      new Set(['s', 'o']),
    );
    expect(fieldsOf({ $facet: { a: [{ $count: 'n' }], b: [{ $group: { _id: '$k' } }] } })).toEqual(new Set(['k']));
  });

  it('names the collections that it will open', () => {
    const stages = [
      { $lookup: { from: 'a', as: 'x', pipeline: [{ $unionWith: 'b' }] } },
      { $facet: { f: [{ $unionWith: 'c' }] } },
    ];
    expect(compilePipeline(stages).collections).toEqual(new Set(['a', 'b', 'c']));
  });

  it('refuses a pipeline that is no list', () => {
    expect(() => compilePipeline({ $match: {} })).toThrow(expect.objectContaining({ code: 14 }) as Error);
  });
});

describe('what joins ask of the other collection', () => {
  const outer = Array.from({ length: 300 }, (_, i): Doc => ({ _id: i, ref: i % 3 }));
  const inner = [{ _id: 0 }, { _id: 1 }, { _id: 2 }];

  it('asks for each value once, many at a time', async () => {
    const run = openCollections({ outer, inner });
    const stages = [{ $lookup: { from: 'inner', localField: 'ref', foreignField: '_id', as: 'x' } }];
    const docs = await aggregate({ outer, inner }, 'outer', stages, {}, run);
    expect(docs[4]).toEqual({ _id: 4, ref: 1, x: [{ _id: 1 }] });
    expect(run.opened.slice(1)).toEqual([{ collection: 'inner', options: { filter: { _id: { $in: [0, 1, 2] } } } }]);
  });

  it('narrows correlated pipelines by their equalities, so that an index can serve them', async () => {
    const run = openCollections({ outer, inner });
    const pipeline = [
      { $match: { $expr: { $and: [{ $eq: ['$_id', '$$r'] }, { $gte: ['$_id', 0] }] }, x: { $exists: false } } },
    ];
    const stages = [{ $limit: 2 }, { $lookup: { from: 'inner', let: { r: '$ref' }, pipeline, as: 'x' } }];
    await aggregate({ outer, inner }, 'outer', stages, {}, run);
    expect(run.opened.slice(1).map((entry) => entry.options)).toEqual([
      { filter: { $and: [{ x: { $exists: false } }, { _id: { $eq: 0 } }] } },
      { filter: { $and: [{ x: { $exists: false } }, { _id: { $eq: 1 } }] } },
    ]);
  });

  it('runs a pipeline that depends on nothing once', async () => {
    const run = openCollections({ outer, inner });
    const stages = [{ $lookup: { from: 'inner', pipeline: [{ $sort: { _id: -1 } }, { $limit: 1 }], as: 'x' } }];
    const docs = await aggregate({ outer, inner }, 'outer', stages, {}, run);
    expect(docs.every((doc) => (doc['x'] as Doc[])[0]!['_id'] === 2)).toBe(true);
    expect(run.opened.slice(1)).toEqual([{ collection: 'inner', options: { sort: { _id: -1 }, limit: 1 } }]);
  });
});

describe('time, memory and others', () => {
  const stages = [{ $addFields: { x: 1 } }, { $sort: { v: 1 } }, { $group: { _id: '$v' } }, { $sort: { _id: 1 } }];

  it('gives the same answer in whatever batches documents come', async () => {
    const [small, large] = await Promise.all(
      [1, 5_000].map((size) => aggregate({ many }, 'many', stages, {}, openCollections({ many }, {}, size))),
    );
    expect(small).toEqual(large);
    expect(small).toHaveLength(20_000);
    expect(small![777]).toEqual({ _id: 777 });
  });

  it('keeps only what a limit after a sort needs', async () => {
    const top = await aggregate({ many }, 'many', [
      { $addFields: { x: 1 } },
      { $sort: { v: -1 } },
      { $skip: 1 },
      { $limit: 2 },
    ]);
    expect(top.map((doc) => doc['v'])).toEqual([19_998, 19_997]);
  });

  it('lets others run meanwhile', async () => {
    let turns = 0;
    let done = false;
    const count = () => {
      turns++;
      if (!done) setImmediate(count);
    };
    setImmediate(count);
    await aggregate({ many }, 'many', stages);
    done = true;
    expect(turns).toBeGreaterThan(20);
  });

  it('stops when its time is up, even within one document', async () => {
    const late = openCollections({ many }, { budget: openBudget({ maxTimeMS: 1 }) });
    await expect(aggregate({ many }, 'many', stages, {}, late)).rejects.toMatchObject({ code: 50 });
    const loop = {
      $reduce: { input: { $range: [0, 500_000] }, initialValue: 0, in: { $add: ['$$value', '$$this'] } },
    };
    const busy = openCollections({ many }, { budget: openBudget({ maxTimeMS: 20 }) });
    await expect(
      aggregate({ many }, 'many', [{ $limit: 1 }, { $project: { x: loop } }], {}, busy),
    ).rejects.toMatchObject({ code: 50 });
  });

  it('stops when the client is gone', async () => {
    const controller = new AbortController();
    const run = openCollections({ many }, { budget: openBudget({ signal: controller.signal }) });
    const answer = aggregate({ many }, 'many', stages, {}, run);
    controller.abort();
    await expect(answer).rejects.toMatchObject({ code: 11601 });
  });

  it.each<[string, Doc]>([
    ['$sort', { $sort: { s: 1 } }],
    ['$group', { $group: { _id: '$_id' } }],
    ['$push', { $group: { _id: null, all: { $push: '$$ROOT' } } }],
    ['$addToSet', { $group: { _id: null, all: { $addToSet: '$s' } } }],
    ['$facet', { $facet: { a: [{ $count: 'n' }] } }],
    ['$bucketAuto', { $bucketAuto: { groupBy: '$v', buckets: 3 } }],
    ['$setWindowFields', { $setWindowFields: { sortBy: { v: 1 }, output: { r: { $rank: {} } } } }],
    ['$lookup', { $lookup: { from: 'many', pipeline: [], as: 'all' } }],
    ['$densify', { $densify: { field: 'v', range: { step: 1, bounds: 'full' } } }],
  ])('stops %s at the memory limit', async (_name, stage) => {
    const run = openCollections({ many }, { budget: openBudget({ memoryBytes: 200_000 }) });
    const answer = aggregate(
      { many },
      'many',
      [{ $match: { _id: { $gte: 0 } } }, { $unset: 'nothing' }, stage],
      {},
      run,
    );
    await expect(answer).rejects.toMatchObject({ code: 146 });
  });

  it('gives memory back when a stage is done', async () => {
    const run = openCollections({ many }, { budget: openBudget({ memoryBytes: 10_000_000 }) });
    const several = Array.from({ length: 6 }, () => ({ $sort: { v: 1 } }));
    expect(await aggregate({ many }, 'many', [{ $unset: 'x' }, ...several, { $count: 'n' }], {}, run)).toEqual([
      { n: 20_000 },
    ]);
  });

  it('leaves the documents it was given alone', async () => {
    const docs = [{ _id: 1, a: { b: [1, 2] } }];
    const before = JSON.stringify(docs);
    await aggregate({ docs }, 'docs', [
      { $addFields: { 'a.c': 1, 'a.b': { $concatArrays: ['$a.b', [3]] } } },
      { $unwind: '$a.b' },
      { $set: { 'a.b': 9 } },
      { $unset: 'a.c' },
      { $lookup: { from: 'docs', localField: '_id', foreignField: '_id', as: 'a.d' } },
    ]);
    expect(JSON.stringify(docs)).toBe(before);
  });
});
