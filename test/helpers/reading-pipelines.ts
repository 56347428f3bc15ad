import type { Document } from 'bson';
import type { Random } from './random.js';

/** A pipeline that reads a field: some way to name it, in some operator, at some place. */
export function readingPipeline(random: Random, field: string): Document[] {
  const place = random.pick(PLACES);
  const shuffle = random.pick<Document[]>([[], [{ $sort: { text: 1, _id: 1 } }], [{ $match: { text: 'x' } }]]);
  return [...shuffle, ...place(random, field), { $limit: 50 }];
}

type Expression = unknown;
type Place = (random: Random, field: string) => Document[];

/** What names a field, whether by its name, by one made at run time or as a part of the whole. */
function nameIt(random: Random, field: string): Expression {
  const made = { $concat: [field.slice(0, 1), field.slice(1)] };
  const whole = random.pick(['$$ROOT', '$$CURRENT']);
  return random.pick<() => Expression>([
    () => `$${field}`,
    () => `$${field}.k`,
    () => `${whole}.${field}`,
    () => ({ $getField: field }),
    () => ({ $getField: made }),
    () => ({ $getField: { field: { $literal: field }, input: whole } }),
    () => ({ $getField: { field: made, input: { $mergeObjects: [whole, {}] } } }),
    () => ({ $let: { vars: { d: whole }, in: `$$d.${field}` } }),
    () => ({ $first: [{ $map: { input: [whole], as: 'd', in: `$$d.${field}` } }] }),
    () => ({ $map: { input: { $objectToArray: whole }, in: '$$this.v' } }),
    () => ({ $reduce: { input: [whole], initialValue: null, in: `$$this.${field}` } }),
    () => ({ $filter: { input: { $objectToArray: whole }, cond: { $eq: ['$$this.k', field] } } }),
    () => ({ $setField: { field: 'z', input: whole, value: `$${field}` } }),
    () => ({ $unsetField: { field: 'text', input: whole } }),
    () => ({ $sortArray: { input: [whole, { [field]: 1 }], sortBy: { [field]: 1 } } }),
    () => whole,
  ])();
}

const guessOf = (random: Random): unknown => random.pick([0, 1, 'x', 'y', [], ['x'], null]);

/** Something that is computed from it, and may fail. */
function compute(random: Random, field: string): Expression {
  const value = nameIt(random, field);
  return random.pick<() => Expression>([
    () => value,
    () => ({ $type: value }),
    () => ({ [random.pick(['$eq', '$gt', '$lte', '$cmp'])]: [value, guessOf(random)] }),
    () => ({ $cond: [{ $in: [value, ['x', 1]] }, 'yes', 'no'] }),
    () => ({ $ifNull: [value, 'nothing'] }),
    () => ({ $switch: { branches: [{ case: { $gt: [value, 0] }, then: 'more' }], default: 'less' } }),
    () => ({ [random.pick(['$toInt', '$size', '$toUpper', '$strLenCP', '$abs', '$bsonSize'])]: value }),
    () => ({ $regexMatch: { input: value, regex: '^x' } }),
    () => ({ $setUnion: [value, ['z']] }),
    () => ({ $convert: { input: value, to: 'string', onError: 'wrong', onNull: 'none' } }),
  ])();
}

/** An accumulator over it, or over another field in its order. */
function accumulate(random: Random, field: string): Document {
  const input = random.chance(0.5) ? compute(random, field) : '$text';
  const sortBy = { [random.pick([field, `${field}.k`])]: random.pick([1, -1]) };
  const plain = [
    '$sum',
    '$avg',
    '$min',
    '$max',
    '$push',
    '$addToSet',
    '$first',
    '$last',
    '$stdDevPop',
    '$mergeObjects',
  ];
  return random.pick<() => Document>([
    () => ({ [random.pick(plain)]: compute(random, field) }),
    () => ({ [random.pick(['$top', '$bottom'])]: { sortBy, output: input } }),
    () => ({ [random.pick(['$topN', '$bottomN'])]: { n: 2, sortBy, output: [input, '$_id'] } }),
    () => ({ [random.pick(['$minN', '$maxN', '$firstN', '$lastN'])]: { n: 2, input: compute(random, field) } }),
    () => ({ $median: { input: compute(random, field), method: 'approximate' } }),
    () => ({ $percentile: { input: compute(random, field), p: [0.1, 0.9], method: 'approximate' } }),
  ])();
}

const window = (random: Random, field: string): Document => ({
  $setWindowFields: {
    ...(random.chance(0.3) && { partitionBy: compute(random, field) }),
    sortBy: { [random.pick([field, 'text'])]: 1 },
    output: {
      z: random.pick<() => Document>([
        () => accumulate(random, field),
        () => ({ $documentNumber: {} }),
        () => ({ $denseRank: {} }),
        () => ({ $shift: { output: compute(random, field), by: 1, default: 'none' } }),
        () => ({ $locf: compute(random, field) }),
        () => ({ $expMovingAvg: { input: compute(random, field), N: 2 } }),
      ])(),
    },
  },
});

const PLACES: readonly Place[] = [
  (random, field) => [{ $set: { z: compute(random, field) } }],
  (random, field) => [{ $set: { z: compute(random, field) } }, { $sort: { z: 1, _id: 1 } }, { $project: { text: 1 } }],
  (random, field) => [{ $project: { z: compute(random, field), [random.pick(['text', field])]: 1 } }],
  (random, field) => [{ $match: { $expr: compute(random, field) } }],
  (random, field) => [{ $match: { text: { $in: ['x', 'y'] }, [`${field}.k`]: { $exists: random.chance(0.5) } } }],
  (random, field) => [{ $sort: { [field]: 1 } }, { $group: { _id: null, z: accumulate(random, field) } }],
  (random, field) => [{ $group: { _id: random.pick(['$text', null]), z: accumulate(random, field) } }],
  (random, field) => [{ $group: { _id: compute(random, field), n: { $sum: 1 } } }, { $sort: { _id: 1 } }],
  (random, field) => [window(random, field), { $project: { _id: 1, z: 1 } }],
  (random, field) => [{ $sortByCount: compute(random, field) }],
  (random, field) => [
    { $bucketAuto: { groupBy: compute(random, field), buckets: 2, output: { z: accumulate(random, field) } } },
  ],
  (random, field) => [{ $replaceWith: { z: compute(random, field) } }],
  (random, field) => [{ $redact: { $cond: [compute(random, field), '$$KEEP', '$$PRUNE'] } }],
  (random, field) => [{ $facet: { one: PLACES[random.below(5)]!(random, field) } }],
  (random, field) => [{ $unionWith: { coll: 'things', pipeline: PLACES[random.below(8)]!(random, field) } }],
  (random, field) => [
    {
      $lookup: {
        ...{ from: 'things', as: random.pick(['z', field]), let: { v: compute(random, field) } },
        pipeline: random.pick<() => Document[]>([
          () => [{ $match: { $expr: { $eq: ['$$v', compute(random, field)] } } }],
          () => [{ $set: { z: ['$$v', compute(random, field)] } }, { $sort: { z: 1, _id: 1 } }, { $limit: 1 }],
          () => PLACES[random.below(8)]!(random, field),
        ])(),
      },
    },
  ],
  (random, field) => [
    {
      $graphLookup: {
        ...{ from: 'things', startWith: compute(random, field), connectFromField: 'owner' },
        ...{ connectToField: random.pick(['text', field]), as: random.pick(['z', `${field}.z`]), depthField: field },
      },
    },
  ],
];
