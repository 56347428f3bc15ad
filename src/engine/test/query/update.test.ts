import { inspect } from 'node:util';
import { BSONRegExp, Decimal128, Timestamp } from 'bson';
import { describe, expect, it } from 'vitest';
import type { Doc } from '../../codec/document.js';
import { EngineError } from '../../errors.js';
import { compileFilter } from '../../query/match/match.js';
import { compileUpdate, supportedUpdateOperators } from '../../query/update/update.js';
import { identicalValues } from '../../query/values/compare.js';
import { toDouble } from '../../query/values/value.js';

const now = new Date('2024-05-06T07:08:09.123Z');

interface Options {
  filter?: Doc;
  arrayFilters?: Doc[];
}

function apply(doc: Doc, update: Doc | Doc[], { filter = {}, arrayFilters = [] }: Options = {}) {
  const before = inspect(doc, { depth: 20 });
  const match = compileFilter(filter).match(doc);
  const result = compileUpdate(update, { arrayFilters }).apply(doc, {
    arrayIndex: match?.arrayIndex,
    inserting: false,
    now,
  });
  expect(inspect(doc, { depth: 20 })).toBe(before);
  expect(result.changed).toBe(result.doc !== doc);
  return result;
}

function refusalOf(doc: Doc, update: Doc | Doc[], options?: Options): number | undefined {
  try {
    apply(doc, update, options);
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
  return undefined;
}

const dec = (text: string) => Decimal128.fromString(text);

/** For each operator: document, update and outcome; null = nothing changes. */
const ANSWERS: Record<string, [doc: Doc, operand: unknown, outcome: Doc | null, options?: Options][]> = {
  $set: [
    [{ a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    [{ a: 1 }, { a: 1 }, null],
    // Another type or field order is a change.
    [{ a: 1 }, { a: 1n }, { a: 1n }],
    [{ a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 } }, { a: { y: 2, x: 1 } }],
    [{}, { 'a.b': 1, 'a.c.d': 2 }, { a: { b: 1, c: { d: 2 } } }],
    [{ a: [1] }, { 'a.3': 9 }, { a: [1, null, null, 9] }],
    [{}, { 'a.0': 1 }, { a: { 0: 1 } }],
    [{ z: 1 }, { y: 1, b: 2 }, { z: 1, b: 2, y: 1 }],
    [{ a: [{ x: 1 }, { x: 2 }] }, { 'a.$.y': 9 }, { a: [{ x: 1 }, { x: 2, y: 9 }] }, { filter: { 'a.x': 2 } }],
    [{ a: [[1, 2], [3]] }, { 'a.$[].$[e]': 0 }, { a: [[1, 0], [0]] }, { arrayFilters: [{ e: { $gte: 2 } }] }],
  ],
  $setOnInsert: [[{ a: 1 }, { b: 2 }, null]],
  $unset: [
    [{ a: 1, b: 2 }, { a: '' }, { b: 2 }],
    [{ a: { b: 1 } }, { 'a.b': 1 }, { a: {} }],
    [{ a: [1, 2] }, { 'a.0': 1 }, { a: [null, 2] }],
    [{ a: 5 }, { 'a.b': 1, 'x.y': 1 }, null],
  ],
  $inc: [
    [{ a: 1 }, { a: 2, b: 3 }, { a: 3, b: 3 }],
    [{ a: 2147483647 }, { a: 1 }, { a: 2147483648n }],
    [{ a: 1 }, { a: 0.5 }, { a: 1.5 }],
    [{ a: 1.5 }, { a: 0.5 }, { a: toDouble(2) }],
    [{ a: 1n }, { a: 1 }, { a: 2n }],
    [{ a: dec('0.10') }, { a: 1 }, { a: dec('1.10') }],
    [{ a: 1 }, { a: 0 }, null],
  ],
  $mul: [
    [{ a: 3 }, { a: 2 }, { a: 6 }],
    [{}, { a: 2n }, { a: 0n }],
    [{ a: 100000 }, { a: 100000 }, { a: 10000000000n }],
  ],
  $min: [
    [{ a: 5 }, { a: 3 }, { a: 3 }],
    [{ a: 5 }, { a: 7 }, null],
    [{ a: 'x' }, { a: 7 }, { a: 7 }],
    [{}, { a: 7 }, { a: 7 }],
  ],
  $max: [
    [{ a: 5 }, { a: 7.5 }, { a: 7.5 }],
    [{ a: 5 }, { a: toDouble(5) }, null],
  ],
  $rename: [
    [{ a: 1, b: 2 }, { a: 'c' }, { b: 2, c: 1 }],
    [{ a: 1, b: 2 }, { a: 'b' }, { b: 1 }],
    [{ a: { x: 1 } }, { 'a.x': 'y.z' }, { a: {}, y: { z: 1 } }],
    [{ a: 1 }, { q: 'a.b' }, null],
    [{ b: [] }, { 'b.b': 'y' }, null],
  ],
  $currentDate: [
    [{}, { at: true }, { at: now }],
    [{}, { at: { $type: 'timestamp' } }, { at: new Timestamp({ t: 1714979289, i: 1 }) }],
  ],
  $push: [
    [{ a: [1] }, { a: [2] }, { a: [1, [2]] }],
    [{}, { a: { $each: [1, 2] } }, { a: [1, 2] }],
    [{ a: [1, 2] }, { a: { $each: [9], $position: -1 } }, { a: [1, 9, 2] }],
    [{ a: [3, 1] }, { a: { $each: [2], $sort: 1, $slice: 2 } }, { a: [1, 2] }],
    [
      { a: [{ n: 1, m: 1 }] },
      { a: { $each: [{ n: 2, m: 0 }], $sort: { n: -1 } } },
      {
        a: [
          { n: 2, m: 0 },
          { n: 1, m: 1 },
        ],
      },
    ],
    [{ a: [1] }, { a: { $each: [] } }, null],
    [{ a: [1] }, { a: { x: 1 } }, { a: [1, { x: 1 }] }],
  ],
  $addToSet: [
    [{ a: [1, { x: 1 }] }, { a: { x: 1 } }, null],
    [{ a: [1] }, { a: { $each: [1n, 2, 2, 'x'] } }, { a: [1, 2, 'x'] }],
    [{ a: [] }, { a: [1] }, { a: [[1]] }],
  ],
  $pull: [
    [{ a: [1, 5, 9] }, { a: { $gte: 5 } }, { a: [1] }],
    [{ a: [{ x: 1, y: 2 }, { x: 2 }] }, { a: { x: 1 } }, { a: [{ x: 2 }] }],
    [{ a: [{ x: 1 }, { x: 5 }] }, { a: { $or: [{ x: 5 }, { y: 1 }] } }, { a: [{ x: 1 }] }],
    [{ a: [{ x: [1, 5] }, { x: [2] }] }, { a: { x: { $elemMatch: { $gt: 4 } } } }, { a: [{ x: [2] }] }],
    [{ a: ['ab', 'b'] }, { a: new BSONRegExp('^a') }, { a: ['b'] }],
    [{ a: [1, null] }, { a: null }, { a: [1] }],
    [{ a: [[1], 1] }, { a: [1] }, { a: [1] }],
    [{ b: 1 }, { a: 1 }, null],
  ],
  $pullAll: [[{ a: [1, 2n, 3, 'x'] }, { a: [2, 'x'] }, { a: [1, 3] }]],
  $pop: [
    [{ a: [1, 2] }, { a: 1 }, { a: [1] }],
    [{ a: [1, 2] }, { a: -1 }, { a: [2] }],
    [{ a: [] }, { a: 1 }, null],
  ],
  $bit: [
    [{ a: 13 }, { a: { and: 10 } }, { a: 8 }],
    [{ a: 3 }, { a: { or: 8n } }, { a: 11n }],
    [{}, { a: { xor: 5 } }, { a: 5 }],
  ],
};

describe('updates', () => {
  for (const [name, rows] of Object.entries(ANSWERS)) {
    it(`applies ${name}`, () => {
      for (const [doc, operand, outcome, options] of rows) {
        const { doc: result, changed } = apply(doc, { [name]: operand }, options);
        const wanted = outcome ?? doc;
        expect(identicalValues(result, wanted), `${name} ${inspect(operand)} gave ${inspect(result)}`).toBe(true);
        expect(changed, `${name} ${inspect(operand)}`).toBe(outcome !== null);
      }
    });
  }

  it('has rows for every operator', () => {
    expect(supportedUpdateOperators.filter((name) => !Object.hasOwn(ANSWERS, name))).toEqual([]);
  });

  it.each<[string, Doc, Doc | Doc[], number, Options?]>([
    ['an unknown operator', {}, { $foo: { a: 1 } }, 9],
    ['a field beside operators', {}, { $set: { a: 1 }, b: 2 }, 9],
    ['an operator without fields', {}, { $set: 5 }, 9],
    ['an empty path', {}, { $set: { '': 1 } }, 56],
    ['a path with an empty part', {}, { $set: { 'a..b': 1 } }, 56],
    ['a name that starts with a dollar', {}, { $set: { $x: 1 } }, 52],
    ['items of an array beside one of them', { a: [{}] }, { $set: { 'a.$[].b': 1, 'a.0.c': 2 } }, 40],
    ['items of a missing array beside a field', {}, { $set: { 'a.$[].b': 1, 'a.x': 2 } }, 40],
    ['two updates of one field', {}, { $set: { a: 1 }, $inc: { a: 1 } }, 40],
    ['an update of a field and of one within', {}, { $set: { 'a.b': 1, a: 1 } }, 40],
    ['two ways to say one element', { a: [1] }, { $set: { 'a.$': 1, 'a.0': 2 } }, 40, { filter: { a: 1 } }],
    ['another _id', { _id: 1 }, { $set: { _id: 2 } }, 66],
    ['removal of the _id', { _id: 1 }, { $unset: { _id: 1 } }, 66],
    ['a field in a number', { a: 1 }, { $set: { 'a.b': 1 } }, 28],
    ['a field in an array', { a: [1] }, { $set: { 'a.b': 1 } }, 28],
    ['a number added to text', { a: 'x' }, { $inc: { a: 1 } }, 14],
    ['text added', { a: 1 }, { $inc: { a: 'x' } }, 14],
    ['a sum beyond 64 bits', { a: 9223372036854775807n }, { $inc: { a: 1 } }, 2],
    ['a push to a number', { a: 1 }, { $push: { a: 1 } }, 2],
    ['an unknown clause of $push', { a: [] }, { $push: { a: { $each: [], $foo: 1 } } }, 2],
    ['$each without a list', { a: [] }, { $push: { a: { $each: 5 } } }, 2],
    ['a pop of two', { a: [1] }, { $pop: { a: 2 } }, 9],
    ['a pop from text', { a: 'x' }, { $pop: { a: 1 } }, 14],
    ['bits of a double', { a: 1.5 }, { $bit: { a: { and: 1 } } }, 2],
    ['a rename to itself', { a: 1 }, { $rename: { a: 'a' } }, 2],
    ['a rename from within a number', { b: 5 }, { $rename: { 'b.b': 'y' } }, 28],
    ['a rename in an array', { a: [{ b: 1 }] }, { $rename: { 'a.0.b': 'c' } }, 2],
    ['$ without a match', { a: [1] }, { $set: { 'a.$': 1 } }, 2],
    ['$[] of no array', { a: 1 }, { $set: { 'a.$[]': 1 } }, 2],
    ['$[] of nothing', {}, { $set: { 'a.$[]': 1 } }, 2],
    ['an identifier without filter', { a: [] }, { $set: { 'a.$[x]': 1 } }, 2],
    ['a filter without use', { a: [] }, { $set: { b: 1 } }, 9, { arrayFilters: [{ x: 1 }] }],
    ['a filter of two names', { a: [] }, { $set: { 'a.$[x]': 1 } }, 9, { arrayFilters: [{ x: 1, y: 1 }] }],
    ['two filters of one name', { a: [] }, { $set: { 'a.$[x]': 1 } }, 9, { arrayFilters: [{ x: 1 }, { x: 2 }] }],
    ['a stage that changes no document', {}, [{ $match: {} }], 72],
    ['an unknown stage', {}, [{ $foo: {} }], 72],
    ['another _id by pipeline', { _id: 1 }, [{ $set: { _id: 2 } }], 66],
    ['another _id by replacement', { _id: 1 }, { _id: 2 }, 66],
    ['operators in a replacement', { _id: 1 }, { a: 1, $set: { b: 1 } }, 52],
    ['a gap of millions', { a: [] }, { $set: { 'a.90000000': 1 } }, 2],
  ])('refuses %s', (_what, doc, update, code, options) => {
    expect(refusalOf(doc, update, options)).toBe(code);
  });

  it('replaces documents, keeping the _id in front', () => {
    expect(Object.entries(apply({ _id: 1, a: 1 }, { b: 2, c: 3 }).doc)).toEqual([['_id', 1], ['b', 2], ['c', 3]]); // prettier-ignore
    expect(apply({ _id: 1, a: 1 }, { a: 1, _id: 1 }).changed).toBe(false);
  });

  it('runs pipelines of stages, keeping the _id', () => {
    const doc = { _id: 1, a: 2 };
    const stages = [{ $set: { b: { $add: ['$a', 1] }, at: '$$NOW' } }, { $unset: 'a' }];
    expect(apply(doc, stages).doc).toEqual({ _id: 1, b: 3, at: now });
    expect(apply(doc, [{ $replaceWith: { x: '$a' } }]).doc).toEqual({ _id: 1, x: 2 });
    expect(apply(doc, [{ $project: { a: 1 } }]).changed).toBe(false);
  });

  it('takes prototype names for fields like any other', () => {
    const update = JSON.parse('{"$set": {"__proto__": 1, "constructor.x": 2}}') as Doc;
    const { doc } = apply({}, update);
    expect(Object.keys(doc)).toEqual(['__proto__', 'constructor']);
    expect(Object.getPrototypeOf(doc)).toBe(Object.prototype);
    expect(({} as Doc)['x']).toBeUndefined();
    expect(apply(doc, { $inc: JSON.parse('{"__proto__": 1}') as Doc }).doc['__proto__']).toBe(2);
  });
});

describe('documents of upserts', () => {
  function upsert(filter: Doc, update: Doc | Doc[]): Doc {
    return compileUpdate(update).upsert(filter, { inserting: true, now });
  }

  it('starts from the equalities of the filter', () => {
    expect(upsert({ a: 1, b: { $eq: 2 }, c: { $gt: 3 }, 'd.e': 4 }, { $set: { x: 5 } })).toEqual({
      a: 1,
      b: 2,
      d: { e: 4 },
      x: 5,
    });
    expect(upsert({ $and: [{ a: 1 }], b: { $in: [2] }, c: { $in: [1, 2] }, $or: [{ d: 1 }, { e: 1 }] }, {})).toEqual(
      {},
    );
    expect(upsert({ $and: [{ a: 1 }], b: { $in: [2] }, c: { $in: [1, 2] } }, { $set: {} })).toEqual({ a: 1, b: 2 });
    expect(upsert({ a: new BSONRegExp('x'), b: { $all: [5] } }, { $inc: { n: 1 } })).toEqual({ b: 5, n: 1 });
  });

  it('puts the _id first and sets what is only for inserts', () => {
    const doc = upsert({ a: 1, _id: 7 }, { $setOnInsert: { b: 2 }, $set: { c: 3 } });
    expect(Object.keys(doc)).toEqual(['_id', 'a', 'b', 'c']);
    expect(Object.keys(upsert({ a: 1 }, { $setOnInsert: { _id: 5 } }))).toEqual(['_id', 'a']);
  });

  it('takes nothing but the _id along into a replacement', () => {
    expect(upsert({ _id: 7, a: 1 }, { b: 2 })).toEqual({ _id: 7, b: 2 });
    expect(upsert({ a: 1 }, { _id: 8 })).toEqual({ _id: 8 });
  });

  it('refuses what cannot be one document', () => {
    const codeOf = (filter: Doc, update: Doc) => {
      try {
        upsert(filter, update);
        return undefined;
      } catch (error) {
        return (error as EngineError).code;
      }
    };
    expect(codeOf({ $and: [{ a: 1 }, { a: 2 }] }, { $set: { b: 1 } })).toBe(54);
    expect(codeOf({ a: 1, 'a.b': 2 }, { $set: { b: 1 } })).toBe(54);
    expect(codeOf({ _id: 1 }, { $set: { _id: 2 } })).toBe(66);
  });
});
