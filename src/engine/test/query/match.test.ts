import { Binary, BSONRegExp, Decimal128, ObjectId, Timestamp } from 'bson';
import { describe, expect, it } from 'vitest';
import type { Doc } from '../../codec/document.js';
import { EngineError } from '../../errors.js';
import { compileFilter, supportedQueryOperators } from '../../query/match/match.js';
import { toDouble } from '../../query/values/value.js';

const DOCS: readonly Doc[] = [
  {
    _id: 1,
    a: 5,
    tags: ['x', 'y'],
    sub: { k: 1 },
    list: [
      { p: 1, q: 1 },
      { p: 2, q: 2 },
    ],
  },
  { _id: 2, a: 5n, tags: [], sub: { k: null }, list: [] },
  { _id: 3, a: Decimal128.fromString('5.0'), tags: 'x', sub: [{ k: 1 }, { k: 2 }], list: [{ p: 1, q: 2 }] },
  { _id: 4, a: null, sub: {}, list: [1, [2, 3]] },
  { _id: 5, name: 'Ünïcode', a: 'five', m: [[1, 2], [3]] },
  { _id: 6, a: [5, 10], bits: 20, name: 'plain', at: new Date(0) },
  { _id: 7, a: toDouble(-0), bits: new Binary(Buffer.from([0b00010100])), name: 'Plain\nsecond' },
];

function ids(filter: Doc): unknown[] {
  const compiled = compileFilter(filter);
  return DOCS.filter((doc) => compiled.matches(doc)).map((doc) => doc['_id']);
}

function refusalOf(filter: Doc): number | undefined {
  try {
    compileFilter(filter);
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
  return undefined;
}

/** For each operator: filters and the documents they find. */
const ANSWERS: Record<string, [filter: Doc, ids: number[]][]> = {
  $eq: [
    [{ a: { $eq: 5 } }, [1, 2, 3, 6]],
    [{ a: 0 }, [7]],
    [{ tags: [] }, [2]],
    [{ 'sub.k': 1 }, [1, 3]],
    [{ 'sub.k': null }, [2, 4, 5, 6, 7]],
    [{ 'm.0': [1, 2] }, [5]],
    [{ 'm.0.1': 2 }, [5]],
    [{ 'list.1': [2, 3] }, [4]],
  ],
  $ne: [[{ a: { $ne: 5 } }, [4, 5, 7]]],
  $geoIntersects: [
    [
      // prettier-ignore
      { a: { $geoIntersects: { $geometry: { type: 'Polygon', coordinates: [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]] } } } },
      [6],
    ],
  ],
  $geoWithin: [
    [{ a: { $geoWithin: { $box: [[10, 10], [0, 0]] } } }, [6]], // prettier-ignore
    [{ a: { $geoWithin: { $polygon: [[0, 0], [6, 0], [6, 9]] } } }, []], // prettier-ignore
    [{ a: { $not: { $geoWithin: { $centerSphere: [[5, 9], 0.02] } } } }, [1, 2, 3, 4, 5, 7]],
  ],
  $gt: [
    [{ a: { $gt: 4.5 } }, [1, 2, 3, 6]],
    [{ a: { $gt: 'a' } }, [5]],
  ],
  $gte: [[{ a: { $gte: 5n } }, [1, 2, 3, 6]]],
  $lt: [[{ a: { $lt: 5 } }, [7]]],
  $lte: [[{ a: { $lte: null } }, [4]]],
  $in: [
    [{ a: { $in: [10, null] } }, [4, 6]],
    [{ name: { $in: [new BSONRegExp('^pl'), 'Ünïcode'] } }, [5, 6]],
    [{ tags: { $in: [[]] } }, [2]],
  ],
  $nin: [[{ a: { $nin: [5, null] } }, [5, 7]]],
  $exists: [
    [{ tags: { $exists: true } }, [1, 2, 3]],
    [{ 'list.1': { $exists: true } }, [1, 4]],
    [{ 'sub.k': { $exists: false } }, [4, 5, 6, 7]],
  ],
  $type: [
    [{ a: { $type: 'number' } }, [1, 2, 3, 6, 7]],
    [{ a: { $type: ['long', 'null'] } }, [2, 4]],
    [{ a: { $type: 'array' } }, [6]],
    [{ a: { $type: 1 } }, [7]],
  ],
  $not: [
    [{ a: { $not: { $type: 'number' } } }, [4, 5]],
    [{ name: { $not: { $regex: 'p', $options: 'i' } } }, [1, 2, 3, 4, 5]],
  ],
  $regex: [
    [{ name: { $regex: 'CODE$', $options: 'i' } }, [5]],
    [{ name: new BSONRegExp('^second', 'm') }, [7]],
    [{ name: { $regex: 'p l a i n # spelled', $options: 'x' } }, [6]],
    [{ name: { $regex: 'Plain.second', $options: 's' } }, [7]],
    [{ name: { $regex: '^(p|P)+lain' } }, [6, 7]],
  ],
  $options: [[{ name: { $options: 'i', $regex: '^PLAIN$' } }, [6]]],
  $mod: [
    [{ a: { $mod: [5, 0] } }, [1, 2, 3, 6, 7]],
    [{ a: { $mod: [3, 1] } }, [6]],
  ],
  $size: [
    [{ list: { $size: 2 } }, [1, 4]],
    [{ tags: { $size: 0 } }, [2]],
  ],
  $all: [
    [{ tags: { $all: ['y', 'x'] } }, [1]],
    [{ tags: { $all: ['x'] } }, [1, 3]],
    [{ tags: { $all: [] } }, []],
    [{ list: { $all: [{ $elemMatch: { p: 1 } }, { $elemMatch: { p: 2 } }] } }, [1]],
  ],
  $elemMatch: [
    [{ list: { $elemMatch: { p: 1, q: 2 } } }, [3]],
    [{ a: { $elemMatch: { $gt: 5, $lt: 11 } } }, [6]],
    [{ m: { $elemMatch: { $elemMatch: { $eq: 3 } } } }, [5]],
    [{ list: { $elemMatch: { $or: [{ q: 2 }, { q: 9 }] } } }, [1, 3]],
    [{ m: { $elemMatch: { 0: 1 } } }, [5]],
  ],
  $bitsAllSet: [
    [{ bits: { $bitsAllSet: [2, 4] } }, [6, 7]],
    [{ bits: { $bitsAllSet: 20 } }, [6, 7]],
  ],
  $bitsAllClear: [[{ bits: { $bitsAllClear: [0, 1] } }, [6, 7]]],
  $bitsAnySet: [[{ bits: { $bitsAnySet: 5 } }, [6, 7]]],
  $bitsAnyClear: [[{ bits: { $bitsAnyClear: [2, 4] } }, []]],
  $and: [[{ $and: [{ a: 5 }, { tags: 'x' }] }, [1, 3]]],
  $or: [[{ $or: [{ _id: 4 }, { tags: 'y' }] }, [1, 4]]],
  $nor: [[{ $nor: [{ a: 5 }, { a: null }] }, [5, 7]]],
  $expr: [
    [{ $expr: { $eq: ['$a', 5] } }, [1, 2, 3]],
    [{ $expr: { $gt: [{ $size: { $ifNull: ['$list', []] } }, 1] } }, [1, 4]],
  ],
  $jsonSchema: [
    [{ $jsonSchema: { required: ['tags'], properties: { tags: { bsonType: 'array', minItems: 1 } } } }, [1]],
    [{ $jsonSchema: { properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }] } } } }, [4, 5]],
    [{ $jsonSchema: { not: { required: ['a'] } } }, []],
  ],
  $comment: [[{ $comment: 'why', _id: 1 }, [1]]],
  $alwaysTrue: [[{ $alwaysTrue: 1 }, [1, 2, 3, 4, 5, 6, 7]]],
  $alwaysFalse: [[{ $alwaysFalse: 1 }, []]],
  $within: [[{ a: { $within: { $box: [[0, 0], [10, 10]] } } }, [6]]], // prettier-ignore
};

describe('filters', () => {
  for (const [name, rows] of Object.entries(ANSWERS)) {
    it(`matches by ${name}`, () => {
      for (const [filter, answer] of rows) expect(ids(filter)).toEqual(answer);
    });
  }

  it('has a row for every operator', () => {
    const ordering = ['$near', '$nearSphere'];
    const named = [...Object.keys(ANSWERS), ...ordering];
    expect(supportedQueryOperators.filter((name) => !named.includes(name))).toEqual([]);
  });

  it.each<[string, Doc, number]>([
    ['an unknown operator on a path', { a: { $foo: 1 } }, 2],
    ['an unknown operator at the top', { $foo: 1 }, 2],
    ['a field among operators', { a: { $gt: 1, b: 2 } }, 2],
    ['$where', { $where: 'true' }, 2],
    ['$text', { $text: { $search: 'x' } }, 2],
    // They order documents, which only a find can.
    ['$near', { a: { $near: [0, 0] } }, 5626500],
    ['$nearSphere', { a: { $nearSphere: [0, 0] } }, 5626500],
    ['a circle of a negative radius', { a: { $geoWithin: { $centerSphere: [[0, 0], -1] } } }, 2],
    ['a box of one corner', { a: { $geoWithin: { $box: [[0, 0]] } } }, 2],
    ['a polygon of two corners', { a: { $geoWithin: { $polygon: [[0, 0], [1, 1]] } } }, 2], // prettier-ignore
    ['two shapes', { a: { $geoWithin: { $box: [[0, 0], [1, 1]], $center: [[0, 0], 1] } } }, 2], // prettier-ignore
    ['an empty list of alternatives', { $or: [] }, 2],
    ['an alternative that is no document', { $or: [1] }, 2],
    ['$in without a list', { a: { $in: 5 } }, 2],
    ['an operator within $in', { a: { $in: [{ $gt: 1 }] } }, 2],
    ['an empty $not', { a: { $not: {} } }, 2],
    ['$not of a value', { a: { $not: 5 } }, 2],
    ['a regular expression for $ne', { a: { $ne: new BSONRegExp('a') } }, 2],
    ['a negative size', { a: { $size: -1 } }, 2],
    ['a divisor of zero', { a: { $mod: [0, 1] } }, 2],
    ['an incomplete $mod', { a: { $mod: [2] } }, 2],
    ['a divisor beyond 64 bits', { a: { $mod: [1e300, 1] } }, 2],
    ['a bit beyond 32 bits', { a: { $bitsAllSet: [4294967304] } }, 2],
    ['an unknown type', { a: { $type: 'float' } }, 2],
    ['$options alone', { a: { $options: 'i' } }, 2],
    ['an unknown option', { a: { $regex: 'a', $options: 'g' } }, 51108],
    ['an unfinished pattern', { a: { $regex: '(' } }, 51091],
    ['a back-reference', { a: { $regex: '(a)\\1' } }, 51091],
    ['$expr on an element', { a: { $elemMatch: { $expr: true } } }, 2],
    ['an unknown schema keyword', { $jsonSchema: { minimun: 1 } }, 9],
    ['$elemMatch of a value', { a: { $elemMatch: 5 } }, 2],
  ])('refuses %s', (_what, filter, code) => {
    expect(refusalOf(filter)).toBe(code);
  });

  it('refuses nesting without end', () => {
    let filter: Doc = { a: 1 };
    for (let i = 0; i < 1000; i++) filter = { $and: [filter] };
    expect(refusalOf(filter)).toBe(2);
  });

  it('takes prototype names for fields like any other', () => {
    expect(ids({ constructor: { $exists: true } })).toEqual([]);
    expect(ids({ 'toString.name': 'x' })).toEqual([]);
    const own = JSON.parse('{"__proto__": {"x": 1}}') as Doc;
    expect(compileFilter({ '__proto__.x': 1 }).matches(own)).toBe(true);
    expect(compileFilter(JSON.parse('{"__proto__": {"x": 1}}') as Doc).matches(own)).toBe(true);
    expect(compileFilter({ '__proto__.x': 1 }).matches({})).toBe(false);
  });

  it('tells planners what an index may answer', () => {
    const { conjuncts, residual } = compileFilter({
      a: { $gt: 1, $lte: 5 },
      $and: [{ b: 'x' }, { c: { $in: [1, 2] } }],
      d: { $exists: true },
    });
    expect(conjuncts).toEqual([
      { path: 'a', op: 'gt', value: 1 },
      { path: 'a', op: 'lte', value: 5 },
      { path: 'b', op: 'eq', value: 'x' },
      { path: 'c', op: 'in', value: [1, 2] },
      { path: 'd', op: 'exists', value: true },
    ]);
    expect(residual).toBe(false);
    expect(compileFilter({ a: 1, b: { $ne: 2 } })).toMatchObject({ residual: true, conjuncts: [{ path: 'a' }] });
    expect(compileFilter({ $or: [{ a: 1 }, { b: 1 }] })).toMatchObject({ residual: true, conjuncts: [] });
    expect(compileFilter({ a: { $in: [new BSONRegExp('x')] } })).toMatchObject({ residual: true, conjuncts: [] });
  });

  it('says which top-level fields it reads', () => {
    expect(compileFilter({ 'a.b': 1, $or: [{ c: 1 }, { 'd.e': { $gt: 1 } }] }).fields).toEqual(
      new Set(['a', 'c', 'd']),
    );
    expect(compileFilter({ $expr: { $eq: ['$x.y', '$z'] } }).fields).toEqual(new Set(['x', 'z']));
    expect(compileFilter({ $expr: { $eq: ['$$ROOT', 1] } }).fields).toBeNull();
    expect(compileFilter({ a: { $elemMatch: { b: 1 } } }).fields).toEqual(new Set(['a']));
  });

  it('finds the array position that positional operators stand for', () => {
    const position = (filter: Doc, doc: Doc) => compileFilter(filter).match(doc)?.arrayIndex;
    expect(position({ a: 5 }, { a: [4, 5, 6] })).toBe(1);
    expect(position({ 'a.b': 5 }, { a: [{ b: 4 }, { b: [5] }] })).toBe(1);
    expect(position({ a: { $elemMatch: { b: 2, c: 2 } } }, { a: [{ b: 2 }, { b: 2, c: 2 }] })).toBe(1);
    expect(position({ $or: [{ a: 9 }, { a: 6 }] }, { a: [4, 5, 6] })).toBe(2);
    expect(position({ x: 1, a: { $gte: 5 } }, { x: 1, a: [4, 5, 6] })).toBe(1);
    expect(position({ x: 1 }, { x: 1, a: [1] })).toBeUndefined();
    expect(compileFilter({ a: 9 }).match({ a: [1] })).toBeNull();
  });

  it('compares only values of one type, in BSON order', () => {
    const ordered: unknown[] = [
      NaN,
      -Infinity,
      Decimal128.fromString('-1E400'),
      -5n,
      -4.5,
      0,
      Decimal128.fromString('0.1'),
      0.1,
      9007199254740992,
      9007199254740993n,
      Infinity,
    ];
    ordered.forEach((value, i) => {
      const above = compileFilter({ v: { $gt: value } });
      ordered.forEach((other, k) => {
        expect(above.matches({ v: other })).toBe(k > i && i > 0);
      });
    });
    expect(compileFilter({ v: { $lt: new Timestamp({ t: 5, i: 0 }) } }).matches({ v: new Date(0) })).toBe(false);
    expect(compileFilter({ v: new ObjectId('0'.repeat(24)) }).matches({ v: '0'.repeat(24) })).toBe(false);
  });
});
