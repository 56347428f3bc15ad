import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Doc } from '../../codec/document.js';
import { EngineError } from '../../errors.js';
import { compilePipeline, supportedStages } from '../../pipeline/compile.js';
import { supportedWindowFunctions } from '../../pipeline/stages/window-functions.js';
import { supportedAccumulators } from '../../query/operators/accumulators.js';
import { identicalValues } from '../../query/values/compare.js';
import { toDouble } from '../../query/values/value.js';
import { aggregate } from '../query/memory-collections.js';

const double = toDouble;
const day = (n: number) => new Date(Date.UTC(2024, 0, n));

const COLLECTIONS = {
  sales: [
    { _id: 1, item: 'a', qty: 2, price: 10, tags: ['x', 'y'], at: day(1) },
    { _id: 2, item: 'b', qty: 1, price: 20, tags: [], at: day(2) },
    { _id: 3, item: 'a', qty: 5, price: 5.5, at: day(4) },
    { _id: 4, item: 'c', qty: 2, price: null, tags: 'x', at: day(8) },
  ],
  items: [
    { _id: 'a', name: 'Apple', parent: 'b' },
    { _id: 'b', name: 'Bread', parent: 'c' },
    { _id: 'c', name: 'Cake', parent: null },
    { _id: 'x', names: ['a', 'b'] },
  ],
  rows: [
    { _id: 1, p: 'k', t: 1, v: 10 },
    { _id: 2, p: 'k', t: 2, v: null },
    { _id: 3, p: 'k', t: 4, v: 40 },
    { _id: 4, p: 'm', t: 1, v: 7 },
    { _id: 5, p: 'm', t: 3 },
  ],
} satisfies Record<string, Doc[]>;

function run(collection: keyof typeof COLLECTIONS, ...stages: unknown[]): Promise<Doc[]> {
  return aggregate(COLLECTIONS, collection, stages);
}

async function expectDocs(docs: Promise<Doc[]>, wanted: unknown): Promise<void> {
  const got = await docs;
  expect(identicalValues(got, wanted), inspect(got, { depth: 10 })).toBe(true);
}

function refusalOf(...stages: unknown[]): number | undefined {
  try {
    compilePipeline(stages);
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
  return undefined;
}

/** For each stage: the collection, stages with it somewhere, and what comes out. */
const ANSWERS: Record<string, [keyof typeof COLLECTIONS, Doc[], unknown][]> = {
  $match: [['sales', [{ $match: { qty: 2 } }, { $match: { item: 'a' } }, { $project: { _id: 1 } }], [{ _id: 1 }]]],
  $project: [
    ['sales', [{ $limit: 1 }, { $project: { _id: 0, total: { $multiply: ['$qty', '$price'] } } }], [{ total: 20 }]],
  ],
  $addFields: [
    [
      'items',
      [{ $match: { _id: 'c' } }, { $addFields: { 'x.y': '$name', name: '$$REMOVE' } }],
      [{ _id: 'c', parent: null, x: { y: 'Cake' } }],
    ],
  ],
  $set: [
    ['items', [{ $match: { _id: 'c' } }, { $set: { name: 1, n: 1 } }], [{ _id: 'c', name: 1, parent: null, n: 1 }]],
  ],
  $unset: [['items', [{ $match: { _id: 'c' } }, { $unset: ['name', 'parent'] }], [{ _id: 'c' }]]],
  $sort: [
    [
      'sales',
      [{ $project: { qty: 1 } }, { $sort: { qty: -1, _id: -1 } }],
      [
        { _id: 3, qty: 5 },
        { _id: 4, qty: 2 },
        { _id: 1, qty: 2 },
        { _id: 2, qty: 1 },
      ],
    ],
  ],
  $limit: [['sales', [{ $project: { _id: 1 } }, { $limit: 2 }], [{ _id: 1 }, { _id: 2 }]]],
  $skip: [['sales', [{ $project: { _id: 1 } }, { $skip: 3 }], [{ _id: 4 }]]],
  $count: [
    ['sales', [{ $match: { qty: 2 } }, { $count: 'n' }], [{ n: 2 }]],
    ['sales', [{ $match: { qty: 99 } }, { $count: 'n' }], []],
  ],
  $group: [
    [
      'sales',
      [{ $group: { _id: '$qty', n: { $sum: 1 } } }],
      [
        { _id: 2, n: 2 },
        { _id: 1, n: 1 },
        { _id: 5, n: 1 },
      ],
    ],
    ['sales', [{ $group: { _id: { i: '$item', x: '$nope' } } }, { $limit: 1 }], [{ _id: { i: 'a' } }]],
  ],
  $unwind: [
    [
      'sales',
      [{ $unwind: '$tags' }, { $project: { tags: 1 } }],
      [
        { _id: 1, tags: 'x' },
        { _id: 1, tags: 'y' },
        { _id: 4, tags: 'x' },
      ],
    ],
    [
      'sales',
      [
        { $unwind: { path: '$tags', includeArrayIndex: 'i', preserveNullAndEmptyArrays: true } },
        { $project: { tags: 1, i: 1 } },
      ],
      [
        { _id: 1, tags: 'x', i: 0n },
        { _id: 1, tags: 'y', i: 1n },
        { _id: 2, i: null },
        { _id: 3, i: null },
        { _id: 4, tags: 'x', i: null },
      ],
    ],
  ],
  $lookup: [
    [
      'sales',
      [
        { $limit: 1 },
        { $lookup: { from: 'items', localField: 'item', foreignField: '_id', as: 'found' } },
        { $project: { found: 1 } },
      ],
      [{ _id: 1, found: [{ _id: 'a', name: 'Apple', parent: 'b' }] }],
    ],
    // An array on either side matches by its elements; null matches null and missing.
    [
      'items',
      [
        { $match: { _id: 'x' } },
        { $lookup: { from: 'items', localField: 'names', foreignField: '_id', as: 'f' } },
        { $project: { n: '$f.name' } },
      ],
      [{ _id: 'x', n: ['Apple', 'Bread'] }],
    ],
    [
      'items',
      [
        { $match: { _id: 'c' } },
        { $lookup: { from: 'items', localField: 'parent', foreignField: 'names', as: 'f' } },
        { $project: { n: '$f._id' } },
      ],
      [{ _id: 'c', n: ['a', 'b', 'c'] }],
    ],
    [
      'sales',
      [
        { $limit: 2 },
        {
          $lookup: {
            from: 'items',
            let: { it: '$item', q: '$qty' },
            pipeline: [{ $match: { $expr: { $eq: ['$_id', '$$it'] } } }, { $project: { _id: 0, name: 1, q: '$$q' } }],
            as: 'found.here',
          },
        },
        { $project: { found: 1 } },
      ],
      [
        { _id: 1, found: { here: [{ name: 'Apple', q: 2 }] } },
        { _id: 2, found: { here: [{ name: 'Bread', q: 1 }] } },
      ],
    ],
    [
      'sales',
      [
        { $limit: 1 },
        {
          $lookup: {
            from: 'items',
            localField: 'item',
            foreignField: '_id',
            let: { q: '$qty' },
            pipeline: [{ $project: { _id: 0, q: '$$q' } }],
            as: 'f',
          },
        },
        { $project: { f: 1 } },
      ],
      [{ _id: 1, f: [{ q: 2 }] }],
    ],
    // Variables of the outer pipeline are known further in.
    [
      'sales',
      [
        { $limit: 1 },
        {
          $lookup: {
            from: 'items',
            let: { it: '$item' },
            pipeline: [
              { $limit: 1 },
              {
                $lookup: {
                  from: 'items',
                  pipeline: [{ $match: { $expr: { $eq: ['$parent', '$$it'] } } }, { $count: 'n' }],
                  as: 'g',
                },
              },
              {
                $lookup: {
                  from: 'items',
                  let: { p: '$parent' },
                  pipeline: [{ $match: { $expr: { $and: [{ $eq: ['$$p', '$_id'] }, { $ne: ['$_id', '$$it'] }] } } }],
                  as: 'h',
                },
              },
              { $project: { g: 1, h: '$h.name' } },
            ],
            as: 'f',
          },
        },
        { $project: { f: 1 } },
      ],
      [{ _id: 1, f: [{ _id: 'a', g: [], h: ['Bread'] }] }],
    ],
    [
      'sales',
      [{ $limit: 1 }, { $lookup: { pipeline: [{ $documents: [{ a: 1 }] }], as: 'f' } }, { $project: { f: 1 } }],
      [{ _id: 1, f: [{ a: 1 }] }],
    ],
  ],
  $graphLookup: [
    [
      'items',
      [
        { $match: { _id: 'a' } },
        {
          $graphLookup: {
            from: 'items',
            startWith: '$parent',
            connectFromField: 'parent',
            connectToField: '_id',
            as: 'up',
            depthField: 'd',
          },
        },
        { $project: { up: { $map: { input: '$up', in: ['$$this._id', '$$this.d'] } } } },
      ],
      [
        {
          _id: 'a',
          up: [
            ['b', 0n],
            ['c', 1n],
          ],
        },
      ],
    ],
    [
      'items',
      [
        { $match: { _id: 'a' } },
        {
          $graphLookup: {
            from: 'items',
            startWith: '$parent',
            connectFromField: 'parent',
            connectToField: '_id',
            as: 'up',
            maxDepth: 0,
            restrictSearchWithMatch: { name: 'Bread' },
          },
        },
        { $project: { up: '$up._id' } },
      ],
      [{ _id: 'a', up: ['b'] }],
    ],
  ],
  $unionWith: [
    [
      'sales',
      [
        { $match: { _id: 1 } },
        { $project: { item: 1 } },
        { $unionWith: { coll: 'items', pipeline: [{ $match: { _id: 'c' } }, { $project: { name: 1 } }] } },
      ],
      [
        { _id: 1, item: 'a' },
        { _id: 'c', name: 'Cake' },
      ],
    ],
  ],
  $facet: [
    [
      'sales',
      [{ $facet: { n: [{ $count: 'n' }], top: [{ $sort: { qty: -1 } }, { $limit: 1 }, { $project: { _id: 1 } }] } }],
      [{ n: [{ n: 4 }], top: [{ _id: 3 }] }],
    ],
  ],
  $bucket: [
    [
      'sales',
      [{ $bucket: { groupBy: '$qty', boundaries: [0, 2, 5], default: 'more', output: { ids: { $push: '$_id' } } } }],
      [
        { _id: 0, ids: [2] },
        { _id: 2, ids: [1, 4] },
        { _id: 'more', ids: [3] },
      ],
    ],
  ],
  $bucketAuto: [
    [
      'sales',
      [{ $bucketAuto: { groupBy: '$_id', buckets: 2 } }],
      [
        { _id: { min: 1, max: 3 }, count: 2 },
        { _id: { min: 3, max: 4 }, count: 2 },
      ],
    ],
    [
      'sales',
      [{ $bucketAuto: { groupBy: '$qty', buckets: 2 } }],
      [
        { _id: { min: 1, max: 5 }, count: 3 },
        { _id: { min: 5, max: 5 }, count: 1 },
      ],
    ],
  ],
  $sortByCount: [
    [
      'sales',
      [{ $sortByCount: '$item' }],
      [
        { _id: 'a', count: 2 },
        { _id: 'b', count: 1 },
        { _id: 'c', count: 1 },
      ],
    ],
  ],
  $replaceRoot: [
    [
      'sales',
      [{ $limit: 1 }, { $replaceRoot: { newRoot: { $mergeObjects: [{ d: 1 }, { i: '$item' }] } } }],
      [{ d: 1, i: 'a' }],
    ],
  ],
  $replaceWith: [['sales', [{ $limit: 1 }, { $replaceWith: { i: '$$ROOT.item' } }], [{ i: 'a' }]]],
  $sample: [['sales', [{ $sample: { size: 10 } }, { $count: 'n' }], [{ n: 4 }]]],
  $redact: [
    [
      'rows',
      [{ $redact: { $cond: [{ $eq: ['$p', 'm'] }, '$$KEEP', '$$PRUNE'] } }, { $project: { _id: 1 } }],
      [{ _id: 4 }, { _id: 5 }],
    ],
  ],
  $documents: [['sales', [{ $documents: [{ a: 1 }, { a: { $add: [1, 1] } }] }], [{ a: 1 }, { a: 2 }]]],
  $setWindowFields: [
    [
      'sales',
      [
        {
          $setWindowFields: {
            sortBy: { _id: 1 },
            output: {
              s: { $sum: '$qty', window: { documents: [-1, 0] } },
              n: { $count: {}, window: { documents: ['unbounded', 'current'] } },
            },
          },
        },
        { $project: { s: 1, n: 1 } },
      ],
      [
        { _id: 1, s: 2, n: 1 },
        { _id: 2, s: 3, n: 2 },
        { _id: 3, s: 6, n: 3 },
        { _id: 4, s: 7, n: 4 },
      ],
    ],
    [
      'sales',
      [
        {
          $setWindowFields: {
            sortBy: { at: 1 },
            output: { ids: { $push: '$_id', window: { range: [-2, 0], unit: 'day' } } },
          },
        },
        { $project: { ids: 1 } },
      ],
      [
        { _id: 1, ids: [1] },
        { _id: 2, ids: [1, 2] },
        { _id: 3, ids: [2, 3] },
        { _id: 4, ids: [4] },
      ],
    ],
    [
      'rows',
      [
        {
          $setWindowFields: {
            partitionBy: '$p',
            sortBy: { t: -1 },
            output: { ids: { $push: '$_id', window: { range: [-1, 1] } } },
          },
        },
        { $project: { ids: 1 } },
      ],
      [
        { _id: 3, ids: [3] },
        { _id: 2, ids: [2, 1] },
        { _id: 1, ids: [2, 1] },
        { _id: 5, ids: [5] },
        { _id: 4, ids: [4] },
      ],
    ],
  ],
  $densify: [
    [
      'rows',
      [
        { $match: { p: 'k' } },
        { $project: { _id: 0, p: 1, t: 1 } },
        { $densify: { field: 't', partitionByFields: ['p'], range: { step: 1, bounds: 'full' } } },
      ],
      [
        { p: 'k', t: 1 },
        { p: 'k', t: 2 },
        { p: 'k', t: 3 },
        { p: 'k', t: 4 },
      ].map(({ p, t }) => ({ p, t })),
    ],
    [
      'sales',
      [
        { $match: { _id: { $lte: 3 } } },
        { $project: { at: 1 } },
        { $densify: { field: 'at', range: { step: 1, unit: 'day', bounds: [day(2), day(4)] } } },
      ],
      [{ _id: 1, at: day(1) }, { _id: 2, at: day(2) }, { at: day(3) }, { _id: 3, at: day(4) }],
    ],
  ],
  $fill: [
    [
      'rows',
      [{ $fill: { partitionBy: '$p', sortBy: { t: 1 }, output: { v: { method: 'locf' } } } }, { $project: { v: 1 } }],
      [
        { _id: 1, v: 10 },
        { _id: 2, v: 10 },
        { _id: 3, v: 40 },
        { _id: 4, v: 7 },
        { _id: 5, v: 7 },
      ],
    ],
    [
      'rows',
      [
        { $fill: { partitionByFields: ['p'], sortBy: { t: 1 }, output: { v: { method: 'linear' } } } },
        { $project: { v: 1 } },
      ],
      [
        { _id: 1, v: 10 },
        { _id: 2, v: double(20) },
        { _id: 3, v: 40 },
        { _id: 4, v: 7 },
        { _id: 5, v: null },
      ],
    ],
    [
      'rows',
      [{ $fill: { output: { v: { value: '$t' } } } }, { $project: { v: 1 } }],
      [
        { _id: 1, v: 10 },
        { _id: 2, v: 2 },
        { _id: 3, v: 40 },
        { _id: 4, v: 7 },
        { _id: 5, v: 3 },
      ],
    ],
  ],
};

describe('stages', () => {
  for (const [name, rows] of Object.entries(ANSWERS)) {
    it(`runs ${name}`, async () => {
      for (const [collection, stages, wanted] of rows) await expectDocs(run(collection, ...stages), wanted);
    });
  }

  it('has rows for every stage', () => {
    // What is near is found by an index: geometry.test.ts.
    expect(supportedStages.filter((name) => !Object.hasOwn(ANSWERS, name))).toEqual(['$geoNear']);
  });

  it('picks samples of the wanted size', async () => {
    const docs = await run('sales', { $sample: { size: 2 } });
    expect(new Set(docs.map((doc) => doc['_id'])).size).toBe(2);
  });

  it('descends with $redact', async () => {
    const docs = [
      {
        _id: 1,
        level: 1,
        a: { level: 5, x: 1 },
        list: [{ level: 1 }, { level: 9 }, 3],
        b: { level: 2, c: { level: 7 } },
      },
    ];
    const stage = { $redact: { $cond: [{ $lte: ['$level', 3] }, '$$DESCEND', '$$PRUNE'] } };
    await expectDocs(aggregate({ docs }, 'docs', [stage]), [
      { _id: 1, level: 1, list: [{ level: 1 }, 3], b: { level: 2 } },
    ]);
  });

  it.each<[string, unknown[], number]>([
    ['an unknown stage', [{ $foo: {} }], 40324],
    ['two stages in one', [{ $match: {}, $sort: { a: 1 } }], 40323],
    ['an empty stage', [{}], 40323],
    ['a stage that is no document', ['$match'], 14],
    ['$out', [{ $out: 'x' }], 115],
    ['$merge', [{ $merge: 'x' }], 115],
    ['$geoNear without a place', [{ $geoNear: {} }], 5860400],
    ['$geoNear behind a stage', [{ $limit: 1 }, { $geoNear: { near: [0, 0] } }], 40603],
    ['a limit of zero', [{ $limit: 0 }], 15958],
    ['a negative skip', [{ $skip: -1 }], 15956],
    ['an empty sort', [{ $sort: {} }], 15976],
    ['a group without _id', [{ $group: { n: { $sum: 1 } } }], 15955],
    ['an unknown accumulator', [{ $group: { _id: null, x: { $foo: 1 } } }], 15952],
    ['a field that is no accumulator', [{ $group: { _id: null, x: 5 } }], 40234],
    ['an accumulator under a dotted name', [{ $group: { _id: null, 'x.y': { $sum: 1 } } }], 40235],
    ['an empty projection', [{ $project: {} }], 51272],
    ['a $facet in a $facet', [{ $facet: { a: [{ $facet: { b: [] } }] } }], 40600],
    ['$documents later on', [{ $match: {} }, { $documents: [] }], 40602],
    ['an incomplete join', [{ $lookup: { from: 'x', as: 'y' } }], 9],
    ['an unknown argument of a join', [{ $lookup: { from: 'x', as: 'y', pipeline: [], foo: 1 } }], 9],
    ['an unknown stage within a join', [{ $lookup: { from: 'x', as: 'y', pipeline: [{ $foo: 1 }] } }], 40324],
    ['an unwind without $', [{ $unwind: 'a' }], 28818],
    ['boundaries out of order', [{ $bucket: { groupBy: '$a', boundaries: [2, 1] } }], 40194],
    ['a count without a name', [{ $count: '' }], 40156],
    ['a rank without order', [{ $setWindowFields: { output: { r: { $rank: {} } } } }], 5371602],
    ['an unknown window function', [{ $setWindowFields: { output: { r: { $foo: {} } } } }], 9],
  ])('refuses %s', (_what, stages, code) => {
    expect(refusalOf(...stages)).toBe(code);
  });

  it('refuses joins nested without end', () => {
    let stages: unknown[] = [];
    for (let i = 0; i < 50; i++) stages = [{ $lookup: { from: 'x', as: 'y', pipeline: stages } }];
    expect(refusalOf(...stages)).toBe(232);
  });
});

describe('accumulators', () => {
  const answers: Record<string, [operand: unknown, answer: unknown][]> = {
    $sum: [
      ['$qty', 10],
      ['$price', 35.5],
      [1, 4],
    ],
    $avg: [
      ['$qty', 2.5],
      ['$nope', null],
    ],
    $min: [['$price', 5.5]],
    $max: [['$item', 'c']],
    $first: [
      ['$_id', 1],
      ['$nope', null],
    ],
    $last: [['$price', null]],
    $push: [
      ['$price', [10, 20, 5.5, null]],
      ['$nope', []],
    ],
    $addToSet: [['$qty', [2, 1, 5]]],
    $mergeObjects: [
      [
        { i: '$item', q: '$qty' },
        { i: 'c', q: 2 },
      ],
    ],
    $stdDevPop: [['$qty', 1.5]],
    $stdDevSamp: [['$nope', null]],
    $count: [[{}, 4]],
    $firstN: [[{ n: 2, input: '$_id' }, [1, 2]]],
    $lastN: [[{ n: 2, input: '$_id' }, [3, 4]]],
    $minN: [[{ n: 2, input: '$price' }, [5.5, 10]]],
    $maxN: [[{ n: { $add: [1, 1] }, input: '$price' }, [20, 10]]],
    $top: [[{ sortBy: { qty: -1 }, output: '$item' }, 'a']],
    $topN: [
      [
        { n: 2, sortBy: { qty: 1, _id: 1 }, output: ['$_id', '$nope'] },
        [
          [2, null],
          [1, null],
        ],
      ],
    ],
    $bottom: [[{ sortBy: { qty: -1 }, output: '$_id' }, 2]],
    $bottomN: [[{ n: 2, sortBy: { _id: 1 }, output: '$_id' }, [3, 4]]],
    $median: [[{ input: '$qty', method: 'approximate' }, double(2)]],
    $percentile: [[{ input: '$qty', p: [0.9], method: 'approximate' }, [double(5)]]],
  };

  for (const [name, rows] of Object.entries(answers)) {
    it(`accumulates ${name}`, async () => {
      for (const [operand, answer] of rows) {
        await expectDocs(run('sales', { $group: { _id: null, r: { [name]: operand } } }), [{ _id: null, r: answer }]);
      }
    });
  }

  it('has rows for every accumulator', () => {
    expect(supportedAccumulators.filter((name) => !Object.hasOwn(answers, name))).toEqual([]);
  });

  it('sums exactly: beyond int32, beyond 2^53, and doubles that cancel out', async () => {
    const sum = async (values: unknown[]) => {
      const docs = values.map((v, _id) => ({ _id, v }));
      const [result] = await aggregate({ docs }, 'docs', [{ $group: { _id: null, s: { $sum: '$v' } } }]);
      return result!['s'];
    };
    expect(await sum([2147483647, 1])).toBe(2147483648n);
    expect(await sum([9007199254740993n, 2])).toBe(9007199254740995n);
    expect(await sum([1e16, 1, -1e16])).toEqual(double(1));
    expect(await sum([0.1, 0.2, 0.3])).toBe(0.6);
    expect(await sum([9223372036854775807n, 9223372036854775807n])).toBe(18446744073709551614);
    expect(await sum(['x', null])).toBe(0);
  });
});

describe('window functions', () => {
  const over = (fn: Doc, window?: Doc) =>
    run(
      'rows',
      {
        $setWindowFields: {
          partitionBy: '$p',
          sortBy: { t: 1 },
          output: { r: { ...fn, ...(window === undefined ? {} : { window }) } },
        },
      },
      { $project: { r: 1 } },
    ).then((docs) => docs.map((doc) => doc['r']));

  const answers: Record<string, [fn: unknown, answer: unknown[], window?: Doc][]> = {
    $rank: [[{}, [1, 2, 3, 1, 2]]],
    $denseRank: [[{}, [1, 2, 3, 1, 2]]],
    $documentNumber: [[{}, [1, 2, 3, 1, 2]]],
    $shift: [[{ output: '$t', by: -1, default: 0 }, [0, 1, 2, 0, 1]]],
    $expMovingAvg: [[{ input: '$t', N: 3 }, [double(1), 1.5, 2.75, double(1), double(2)]]],
    $derivative: [[{ input: '$v' }, [null, null, double(10), null, null], { documents: ['unbounded', 'current'] }]],
    $integral: [
      [{ input: '$t' }, [double(0), 1.5, 7.5, double(0), double(4)], { documents: ['unbounded', 'current'] }],
    ],
    $covariancePop: [
      [['$t', '$t'], [double(0), 0.25, 14 / 9, double(0), double(1)], { documents: ['unbounded', 'current'] }],
    ],
    $covarianceSamp: [[['$t', '$t'], [null, 0.5, 7 / 3, null, double(2)], { documents: ['unbounded', 'current'] }]],
    $locf: [['$v', [10, 10, 40, 7, 7]]],
    $linearFill: [['$v', [10, double(20), 40, 7, null]]],
  };

  for (const [name, rows] of Object.entries(answers)) {
    it(`computes ${name}`, async () => {
      for (const [operand, answer, window] of rows) {
        const got = await over({ [name]: operand }, window);
        const close = (a: unknown, b: unknown) =>
          identicalValues(a, b) || (typeof a === 'number' && typeof b === 'number' && Math.abs(a - b) < 1e-12);
        expect(
          got.every((value, i) => close(value, answer[i])),
          inspect(got),
        ).toBe(true);
      }
    });
  }

  it('has a row for every function that is no accumulator', () => {
    const known = new Set([...Object.keys(answers), ...supportedAccumulators]);
    expect(supportedWindowFunctions.filter((name) => !known.has(name))).toEqual([]);
  });

  it('uses every accumulator over windows', async () => {
    expect(await over({ $max: '$v' }, { documents: [-1, 1] })).toEqual([10, 40, 40, 7, 7]);
    expect(await over({ $push: '$t' })).toEqual([[1, 2, 4], [1, 2, 4], [1, 2, 4], [1, 3], [1, 3]]); // prettier-ignore
    expect(await over({ $first: '$t' }, { documents: ['current', 'unbounded'] })).toEqual([1, 2, 4, 1, 3]);
    expect(await over({ $sum: '$t' }, { documents: [1, 2] })).toEqual([6, 4, 0, 3, 0]);
  });

  it('gives ties one rank', async () => {
    const docs = [5, 5, 7].map((v, _id) => ({ _id, v }));
    const stage = { $setWindowFields: { sortBy: { v: 1 }, output: { r: { $rank: {} }, d: { $denseRank: {} } } } };
    const result = await aggregate({ docs }, 'docs', [stage]);
    expect(result.map(({ r, d }) => [r, d])).toEqual([[1, 1], [1, 1], [3, 2]]); // prettier-ignore
  });
});
