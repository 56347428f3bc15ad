import { ObjectId } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/features/collections/collection.js';
import { guardPipeline, joinedNames } from '../../../src/features/documents/pipeline/guard-pipeline.js';
import type { PipelineSource } from '../../../src/features/documents/pipeline/pipeline-literals.js';
import { missing } from '../../../src/errors.js';
import { buildCollection } from './build-collection.js';

const HEX = '0123456789abcdef01234567';
const ID = new ObjectId(HEX);

const source = (name: string, fields: Collection['fields']): PipelineSource => ({
  collection: buildCollection({ name, fields }),
  storedName: `stored_${name}`,
  unseen: new Set<string>(),
  visible: { visibleIn: name },
  isRestricted: true,
});
const posts = source('posts', [
  { name: 'title', type: 'String' },
  { name: 'published', type: 'Date' },
  { name: 'author', type: 'Ref', ref: 'authors' },
]);
const others: Record<string, PipelineSource> = {
  posts,
  authors: source('authors', [{ name: 'born', type: 'Date' }]),
};
const find = (name: string): PipelineSource => {
  const found = others[name];
  if (!found) throw missing('COLLECTION_NOT_FOUND', `There is no collection "${name}" in this project`);
  return found;
};
const guard = (...stages: unknown[]) => guardPipeline(stages, posts, find);
const refusal = (...stages: unknown[]): { code: string; kind: string; message: string } => {
  try {
    guard(...stages);
  } catch (error) {
    return error as { code: string; kind: string; message: string };
  }
  throw new Error(`accepted: ${JSON.stringify(stages)}`);
};

const OWN = { $match: { visibleIn: 'posts' } };
/** What MongoDB does not move a filter across. */
const BEHIND = { $limit: Number.MAX_SAFE_INTEGER };
const CLEAN = { $unset: '_bsvc' };

describe('the start of a pipeline', () => {
  it('keeps expressions, which can fail, behind the restriction, and conditions before them', () => {
    const $expr = { $divide: [1, '$n'] };
    expect(guard({ $match: { title: 'a', $expr } })).toEqual([
      OWN,
      { $match: { title: 'a' } },
      BEHIND,
      { $match: { $expr } },
      CLEAN,
    ]);
    const near = { near: { type: 'Point', coordinates: [0, 0] }, distanceField: 'd' };
    expect(refusal({ $geoNear: { ...near, query: { $or: [{ $expr }] } } }).message).toContain(
      '$expr cannot be part of',
    );
    const unrestricted = { ...posts, isRestricted: false };
    expect(guardPipeline([{ $match: { $expr } }], unrestricted, find)).toEqual([OWN, { $match: { $expr } }, CLEAN]);
  });

  it.each([[{ $search: { index: 'a', text: { query: 'b', path: 'title' } } }]])('comes after a leading %j', (lead) => {
    expect(guard(lead, { $limit: 1 })).toEqual([lead, OWN, { $limit: 1 }, CLEAN]);
  });

  it('comes after a leading $geoNear, whose own query is restricted too', () => {
    const lead = {
      $geoNear: { near: { type: 'Point', coordinates: [1, 2] }, distanceField: 'd', query: { title: 'a' } },
    };
    expect(guard(lead)).toEqual([
      { $geoNear: { ...lead.$geoNear, query: { $and: [posts.visible, { title: 'a' }] } } },
      OWN,
      CLEAN,
    ]);
  });
});

describe('joins', () => {
  it('restricts what $graphLookup walks through', () => {
    const graph = {
      from: 'authors',
      startWith: '$boss',
      connectFromField: 'boss',
      connectToField: 'name',
      as: 'chain',
    };
    const [, , first, second] = guard({ $graphLookup: { ...graph, restrictSearchWithMatch: { a: 1 } } });
    expect(first!.$graphLookup.from).toBe('stored_authors');
    expect(first!.$graphLookup.restrictSearchWithMatch).toEqual({ $and: [{ visibleIn: 'authors' }, { a: 1 }] });
    expect(second).toEqual({ $unset: 'chain._bsvc' });
  });

  it('names every joined collection', () => {
    expect(
      joinedNames([{ $facet: { a: [{ $lookup: { from: 'x', as: 'x', pipeline: [{ $unionWith: 'y' }] } }] } }]),
    ).toEqual(new Set(['x', 'y']));
  });

  it.each(['users', 'Users', 'USERS'])('refuses %s in every stage', (name) => {
    for (const stage of [
      { $lookup: { from: name, localField: 'a', foreignField: 'b', as: 'c' } },
      { $unionWith: name },
      { $unionWith: { coll: name } },
      { $graphLookup: { from: name, startWith: '$a', connectFromField: 'a', connectToField: 'b', as: 'c' } },
      { $facet: { a: [{ $unionWith: name }] } },
      { $lookup: { from: 'authors', as: 'c', pipeline: [{ $unionWith: { coll: name, pipeline: [] } }] } },
    ]) {
      expect(refusal(stage)).toMatchObject({ kind: 'invalid', code: 'USERS_BLOCKED' });
    }
  });

  it('answers 404 for a collection that the project does not have', () => {
    expect(refusal({ $unionWith: 'stored_authors' })).toMatchObject({ kind: 'missing', code: 'COLLECTION_NOT_FOUND' });
    expect(refusal({ $unionWith: '__proto__x' })).toMatchObject({ kind: 'missing' });
  });

  it.each([
    [{ $lookup: { from: { db: 'admin', coll: 'x' }, pipeline: [], as: 'c' } }],
    [{ $lookup: { from: 'authors', as: 'c' } }],
    [{ $lookup: { from: 'authors', localField: 'a', as: 'c' } }],
    [{ $lookup: { from: 'authors', localField: '$a', foreignField: 'b', as: 'c' } }],
    [{ $lookup: { from: 'authors', pipeline: {}, as: 'c' } }],
    [{ $lookup: { from: 'authors', pipeline: [], as: 'c', allowPartialResults: true } }],
    [{ $lookup: { from: 'authors', pipeline: [], as: 'c', let: { ROOT: 1 } } }],
    [{ $lookup: { pipeline: [{ $documents: [] }], as: 'c' } }],
    [{ $unionWith: { pipeline: [] } }],
    [{ $unionWith: 5 }],
  ])('refuses %j as malformed', (stage) => {
    expect(refusal(stage)).toMatchObject({ kind: 'invalid', code: 'INVALID_PIPELINE' });
  });
});

describe('what is blocked', () => {
  const blocked = [
    { $out: 'x' },
    { $merge: { into: 'x' } },
    { $currentOp: {} },
    { $collStats: {} },
    { $indexStats: {} },
    { $planCacheStats: {} },
    { $listSessions: {} },
    { $changeStream: {} },
    { $documents: [{ a: 1 }] },
    { $searchMeta: {} },
    { $_internalInhibitOptimization: {} },
    { $match: { $where: 'true' } },
    { $match: { $and: [{ a: { $not: { $where: '1' } } }] } },
    { $match: { $expr: { $function: { body: 'f', args: [], lang: 'js' } } } },
    { $project: { a: { $function: {} } } },
    { $project: { a: { b: [{ $cond: [true, { $function: {} }, 1] }] } } },
    { $group: { _id: null, a: { $accumulator: {} } } },
    { $setWindowFields: { output: { a: { $function: {}, window: {} } } } },
  ];
  const places: [string, (stage: object) => object][] = [
    ['at the top', (stage) => stage],
    ['in $facet', (stage) => ({ $facet: { a: [stage] } })],
    ['in $lookup', (stage) => ({ $lookup: { from: 'authors', as: 'a', pipeline: [stage] } })],
    [
      'in $unionWith in $facet',
      (stage) => ({ $facet: { a: [{ $unionWith: { coll: 'authors', pipeline: [stage] } }] } }),
    ],
  ];

  it.each(places)('is blocked %s', (_, place) => {
    for (const stage of blocked) {
      expect(refusal({ $limit: 1 }, place(stage)), JSON.stringify(stage)).toMatchObject({
        kind: 'invalid',
        code: 'BLOCKED_STAGE',
      });
    }
  });
});

describe('what is malformed', () => {
  it.each<[string, unknown]>([
    ['no list', {}],
    ['nothing', undefined],
    ['empty', []],
    ['a stage that is no object', ['$match']],
    ['a stage with two keys', [{ $limit: 1, $skip: 1 }]],
    ['an empty stage', [{}]],
    ['an unknown stage', [{ $foo: 1 }]],
    ['a prototype key as a stage', [{ constructor: 1 }]],
    ['an unknown operator', [{ $project: { a: { $foo: 1 } } }]],
    ['two operators in one expression', [{ $project: { a: { $abs: 1, $ceil: 2 } } }]],
    ['an unknown condition', [{ $match: { a: { $foo: 1 } } }]],
    ['$text', [{ $match: { $text: { $search: 'a' } } }]],
    ['$near in $match', [{ $match: { a: { $near: [1, 2] } } }]],
    ['an operator inside a value', [{ $match: { a: { b: { $gt: 1 } } } }]],
    ['$and without a list', [{ $match: { $and: {} } }]],
    ['a negative limit', [{ $limit: -1 }]],
    ['a limit that is a text', [{ $limit: '1' }]],
    ['a catastrophic pattern', [{ $match: { a: { $regex: '(a+)+$' } } }]],
    [
      'a catastrophic pattern in an expression',
      [{ $project: { a: { $regexMatch: { input: '$a', regex: '(a|a)*$' } } } }],
    ],
    ['a pattern out of the data', [{ $project: { a: { $regexMatch: { input: '$a', regex: '$b' } } } }]],
    ['extended patterns', [{ $match: { a: { $regex: 'a', $options: 'x' } } }]],
    ['$geoNear not at the start', [{ $limit: 1 }, { $geoNear: { near: [1, 2] } }]],
    ['$search inside of $facet', [{ $facet: { a: [{ $search: { text: {} } }] } }]],
    ['a variable about the cluster', [{ $project: { a: '$$CLUSTER_TIME' } }]],
    ['metadata of a search', [{ $project: { a: '$$SEARCH_META' } }]],
    ['roles of the database user', [{ $project: { a: '$$USER_ROLES' } }]],
    ['an empty path', [{ $project: { a: '$' } }]],
    ['the service’s notes', [{ $project: { a: '$_bsvc' } }]],
    ['the notes below the root', [{ $project: { a: '$$ROOT._bsvc.x' } }]],
    ['the notes in $match', [{ $match: { '_bsvc.x': 1 } }]],
    ['the notes by $getField', [{ $project: { a: { $getField: '_bsvc' } } }]],
    ['a prototype key', [JSON.parse('{"$project":{"__proto__":{"a":1}}}')]],
    ['a driver type', [{ $match: { a: { _bsontype: 'Code', code: 'x' } } }]],
    ['too many stages', Array.from({ length: 101 }, () => ({ $limit: 1 }))],
    ['too many joins', Array.from({ length: 11 }, () => ({ $unionWith: 'authors' }))],
    ['too deep', [{ $project: { a: nest(40) } }]],
  ])('is refused: %s', (_, stages) => {
    try {
      guardPipeline(stages, posts, find);
    } catch (error) {
      expect(error).toMatchObject({ kind: 'invalid', code: 'INVALID_PIPELINE' });
      return;
    }
    throw new Error('accepted');
  });

  it('refuses joins nested more than four deep', () => {
    let stage: object = { $limit: 1 };
    for (let depth = 0; depth < 5; depth++) stage = { $unionWith: { coll: 'authors', pipeline: [stage] } };
    expect(refusal(stage).message).toContain('at most 4 deep');
  });
});

describe('constants', () => {
  const matched = (filter: object) => guard({ $match: filter })[1]!.$match as unknown;
  const computed = (expression: unknown) => guard({ $project: { x: expression } })[2]!.$project.x as unknown;

  it.each<[object, object]>([
    [{ _id: HEX }, { _id: ID }],
    [{ _id: { $in: [HEX, 'x'] } }, { _id: { $in: [ID, 'x'] } }],
    [{ _id: { $gt: HEX } }, { _id: { $gt: ID } }],
    [{ _id: { $not: { $eq: HEX } } }, { _id: { $not: { $eq: ID } } }],
    [{ $or: [{ $and: [{ _id: { $ne: HEX } }] }] }, { $or: [{ $and: [{ _id: { $ne: ID } }] }] }],
    [{ 'who._id': HEX }, { 'who._id': { $in: [ID, HEX] } }],
    [{ 'who._id': { $ne: HEX } }, { 'who._id': { $nin: [ID, HEX] } }],
    [{ author: HEX }, { author: HEX }],
    [{ list: { $elemMatch: { _id: HEX } } }, { list: { $elemMatch: { _id: { $in: [ID, HEX] } } } }],
    [{ _id: { $oid: HEX } }, { _id: ID }],
    [{ createdAt: { $gte: '2026-01-31' } }, { createdAt: { $gte: new Date('2026-01-31T00:00:00Z') } }],
    [{ published: '2026-01-31T01:00:00+01:00' }, { published: new Date('2026-01-31T00:00:00Z') }],
    [{ title: '2026-01-31' }, { title: '2026-01-31' }],
    [{ title: { $date: '2026-01-31' } }, { title: new Date('2026-01-31T00:00:00Z') }],
    [{ a: { b: 1 } }, { a: { $eq: { b: 1 } } }],
  ])('of $match %j are typed', (given, expected) => {
    expect(matched(given)).toEqual(expected);
  });

  it.each<[unknown, unknown]>([
    [{ $eq: ['$_id', HEX] }, { $eq: ['$_id', { $literal: ID }] }],
    [{ $eq: [HEX, '$$ROOT._id'] }, { $eq: [{ $literal: ID }, '$$ROOT._id'] }],
    [{ $eq: ['$$who._id', HEX] }, { $in: ['$$who._id', [ID, HEX]] }],
    [{ $ne: ['$who._id', HEX] }, { $not: [{ $in: ['$who._id', [ID, HEX]] }] }],
    [{ $in: ['$_id', [HEX]] }, { $in: ['$_id', [ID]] }],
    [{ $gt: ['$createdAt', '2026-01-31'] }, { $gt: ['$createdAt', { $literal: new Date('2026-01-31T00:00:00Z') }] }],
    [{ $eq: ['$title', HEX] }, { $eq: ['$title', { $literal: HEX }] }],
    [{ $literal: { $where: '$_id' } }, { $literal: { $where: '$_id' } }],
  ])('of the expression %j are typed', (given, expected) => {
    expect(computed(given)).toEqual(expected);
  });

  it('are left alone where a stage has given the field another meaning', () => {
    const stages = guard(
      { $group: { _id: '$author', createdAt: { $max: '$title' } } },
      { $match: { _id: HEX, createdAt: '2026-01-31' } },
    );
    expect(stages.at(-1)).toEqual({ $match: { _id: { $in: [ID, HEX] }, createdAt: '2026-01-31' } });
    expect(guard({ $set: { published: '$title' } }, { $match: { published: '2026-01-31' } }).at(-1)).toEqual({
      $match: { published: '2026-01-31' },
    });
  });

  it('take the types of the joined collection in its pipeline', () => {
    const pipeline = [{ $match: { born: '2000-01-01', published: '2000-01-01' } }];
    const [, , stage] = guard({ $lookup: { from: 'authors', as: 'a', pipeline } });
    expect(stage!.$lookup.pipeline[1]).toEqual({
      $match: { born: new Date('2000-01-01T00:00:00Z'), published: '2000-01-01' },
    });
  });
});

describe('ordinary pipelines', () => {
  it.each<[string, object[]]>([
    [
      '$group',
      [{ $group: { _id: { a: '$title' }, n: { $sum: 1 }, top: { $topN: { n: 2, sortBy: { a: -1 }, output: '$a' } } } }],
    ],
    [
      '$bucket',
      [
        {
          $bucket: {
            groupBy: '$a',
            boundaries: [0, 1, { $date: '2026-01-01' }],
            default: 'x',
            output: { n: { $sum: 1 } },
          },
        },
      ],
    ],
    [
      '$setWindowFields',
      [
        {
          $setWindowFields: {
            sortBy: { a: 1 },
            output: { s: { $sum: '$a', window: { documents: ['unbounded', 0] } } },
          },
        },
      ],
    ],
    [
      '$switch',
      [{ $project: { a: { $switch: { branches: [{ case: { $gt: ['$a', 1] }, then: 'x' }], default: 'y' } } } }],
    ],
    [
      '$filter and $map',
      [{ $set: { a: { $map: { input: { $filter: { input: '$l', as: 'i', cond: '$$i.x' } }, in: '$$this.y' } } } }],
    ],
    ['$unwind', [{ $unwind: { path: '$tags', preserveNullAndEmptyArrays: true } }, { $sortByCount: '$tags' }]],
    ['$redact', [{ $redact: { $cond: [{ $eq: ['$a', 1] }, '$$KEEP', '$$PRUNE'] } }]],
    ['$regexMatch', [{ $match: { $expr: { $regexMatch: { input: '$a', regex: '^a.*b', options: 'i' } } } }]],
    [
      '$densify and $fill',
      [
        { $densify: { field: 'a', range: { step: 1, bounds: 'full' } } },
        { $fill: { sortBy: { a: 1 }, output: { b: { method: 'locf' } } } },
      ],
    ],
    [
      '$sample, $unset, $replaceWith',
      [{ $sample: { size: 3 } }, { $unset: ['a', 'b.c'] }, { $replaceWith: { $mergeObjects: ['$$ROOT', { x: 1 }] } }],
    ],
  ])('are accepted: %s', (_, stages) => {
    expect(guard(...stages).length).toBeGreaterThan(stages.length);
  });
});

describe('any pipeline whatsoever', () => {
  const names = fc.constantFrom('authors', 'posts', 'users', 'stored_x', 'other');
  const leaf = fc.constantFrom<unknown>(
    '$a',
    '$$ROOT',
    1,
    null,
    'x',
    { $where: '1' },
    { $function: {} },
    { $abs: '$a' },
    {},
    [],
  );
  const { stage } = fc.letrec<{ stage: unknown; stages: unknown[] }>((tie) => ({
    stages: fc.array(tie('stage'), { maxLength: 3 }),
    stage: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.record({ $match: fc.dictionary(fc.constantFrom('a', '$or', '$expr', '_id'), leaf, { maxKeys: 2 }) }),
      fc.record({ $project: fc.dictionary(fc.constantFrom('a', 'b'), leaf, { minKeys: 1, maxKeys: 2 }) }),
      fc.record({ $unionWith: fc.oneof(names, fc.record({ coll: names, pipeline: tie('stages') })) }),
      fc.record({ $lookup: fc.record({ from: names, as: fc.constant('j'), pipeline: tie('stages') }) }),
      fc.record({
        $lookup: fc.record({
          from: names,
          as: fc.constant('j'),
          localField: fc.constant('_id'),
          foreignField: fc.constant('a'),
        }),
      }),
      fc.record({ $facet: fc.dictionary(fc.constantFrom('f', 'g'), tie('stages'), { minKeys: 1, maxKeys: 2 }) }),
      fc.record({
        $graphLookup: fc.record({
          from: names,
          startWith: leaf,
          connectFromField: fc.constant('a'),
          connectToField: fc.constantFrom('b', '_id'),
          as: fc.constant('g'),
        }),
      }),
      fc.constantFrom(
        { $match: { $expr: { $divide: [1, '$title'] } } },
        { $match: { title: 'a', $or: [{ $expr: { $toInt: '$title' } }] } },
      ),
      fc.constantFrom({ $out: 'x' }, { $merge: 'x' }, { $limit: 1 }, { $currentOp: {} }),
    ),
  }));

  it('reads stored collections only behind their restriction, or is refused', () => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(stage, { minLength: 1, maxLength: 3 }), (stages) => {
        let guarded;
        try {
          guarded = guardPipeline(stages, posts, find);
        } catch (error) {
          expect(error).toMatchObject({ kind: expect.stringMatching(/^(invalid|missing)$/) as string });
          return;
        }
        accepted++;
        expect(guarded[0]).toEqual(OWN);
        expect(guarded).toContainEqual(CLEAN);
        expectRestricted(guarded);
        const failing = guarded.findIndex(({ $match }) => JSON.stringify($match ?? '').includes('$expr'));
        if (failing >= 0) expect(guarded.slice(0, failing)).toContainEqual(BEHIND);
        expect(JSON.stringify(guarded)).not.toMatch(/"\$(where|function|out|merge|currentOp)"/);
      }),
      { seed: 11, numRuns: 4000 },
    );
    expect(accepted).toBeGreaterThan(400);
  });
});

/**
 * Every place that names a stored collection begins with, or carries, the restriction of that collection, and takes the
 * service's notes away.
 */
function expectRestricted(value: unknown): void {
  if (Array.isArray(value)) return value.forEach(expectRestricted);
  if (typeof value !== 'object' || value === null) return;
  const entry = value as Record<string, unknown>;
  const stored = entry.from ?? entry.coll;
  if (typeof stored === 'string') {
    const visible = { visibleIn: stored.replace('stored_', '') };
    expect(stored).toMatch(/^stored_(posts|authors)$/);
    if ('restrictSearchWithMatch' in entry) {
      expect((entry.restrictSearchWithMatch as { $and: object[] }).$and[0]).toEqual(visible);
    } else {
      expect((entry.pipeline as object[])[0]).toEqual({ $match: visible });
      expect(entry.pipeline).toContainEqual(CLEAN);
    }
  }
  Object.values(entry).forEach(expectRestricted);
}

function nest(depth: number): unknown {
  return depth === 0 ? 1 : { a: nest(depth - 1) };
}
