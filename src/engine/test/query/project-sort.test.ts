import { BSONRegExp, Decimal128, MaxKey, MinKey, ObjectId, Timestamp, Binary } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Doc } from '../../codec/document.js';
import { EngineError } from '../../errors.js';
import { compileFilter } from '../../query/match/match.js';
import { compileProjection } from '../../query/project.js';
import { compileSort, extractKeys } from '../../query/sort.js';
import { compareValues, identicalValues } from '../../query/values/compare.js';
import { toDouble } from '../../query/values/value.js';
import { keyOf } from '../../query/values/value-key.js';

function refusalOf(run: () => unknown): number | undefined {
  try {
    run();
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
  return undefined;
}

describe('projections', () => {
  const doc: Doc = {
    _id: 1,
    a: 1,
    b: { x: 1, y: [{ z: 1, w: 2 }, 5, [{ z: 3 }]] },
    list: [1, 2, 3, 4],
    docs: [{ k: 1 }, { k: 2 }, { k: 3 }],
  };

  it.each<[Doc, Doc]>([
    [{ a: 1 }, { _id: 1, a: 1 }],
    [{ a: 1, _id: 0 }, { a: 1 }],
    [
      { list: 1, a: true },
      { _id: 1, a: 1, list: [1, 2, 3, 4] },
    ],
    [{ 'b.x': 1 }, { _id: 1, b: { x: 1 } }],
    [{ b: { y: { z: 1 } } }, { _id: 1, b: { y: [{ z: 1 }, [{ z: 3 }]] } }],
    [
      { 'b.y.z': 0, list: 0, docs: 0 },
      { _id: 1, a: 1, b: { x: 1, y: [{ w: 2 }, 5, [{}]] } },
    ],
    [{ _id: 0, b: 0, list: 0, docs: 0 }, { a: 1 }],
    [
      { list: { $slice: [1, 2] }, b: 0, docs: 0 },
      { _id: 1, a: 1, list: [2, 3] },
    ],
    [
      { list: { $slice: [-3, 2] }, a: 1 },
      { _id: 1, a: 1, list: [2, 3] },
    ],
    [{ docs: { $elemMatch: { k: { $gt: 1 } } } }, { _id: 1, docs: [{ k: 2 }] }],
    [
      { list: { $elemMatch: { $gt: 2 } }, a: 1 },
      { _id: 1, a: 1, list: [3] },
    ],
    [
      { a: '$b.x', c: { $add: ['$a', 1] } },
      { _id: 1, a: 1, c: 2 },
    ],
    [{ 'b.n': { $size: '$list' }, _id: 0 }, { b: { n: 4 } }],
    [{ b: { x: 1, n: '$a' } }, { _id: 1, b: { x: 1, n: 1 } }],
    [{ s: 'text', _id: 0 }, { s: 'text' }],
    [{ sliced: { $slice: ['$list', 1] }, _id: 0 }, { sliced: [1] }],
    [{ '_id.x': 1, a: 1 }, { a: 1 }],
    [{}, doc],
  ])('%j', (spec, answer) => {
    const result = compileProjection(spec).apply(doc);
    expect(result).toEqual(answer);
    expect(Object.keys(result)).toEqual(Object.keys(answer));
  });

  it('puts the position that the filter matched for the positional $', () => {
    const filter = compileFilter({ 'docs.k': { $gt: 1 } });
    const { apply } = compileProjection({ 'docs.$': 1, a: 1 });
    expect(apply(doc, filter.match(doc))).toEqual({ _id: 1, a: 1, docs: [{ k: 2 }] });
    expect(refusalOf(() => apply(doc, {}))).toBe(51246);
  });

  it.each<[string, Doc, number]>([
    ['an exclusion among inclusions', { a: 1, b: 0 }, 31254],
    ['an inclusion among exclusions', { a: 0, b: 1 }, 31253],
    ['an expression among exclusions', { a: 0, b: '$a' }, 31252],
    ['a field and a part of it', { b: 1, 'b.x': 1 }, 31249],
    ['a part and its field', { 'b.x': 1, b: 1 }, 31250],
    ['an empty part', { 'a..b': 1 }, 40352],
    ['an empty document', { a: {} }, 51270],
    ['an unknown operator', { a: { $foo: 1 } }, 168],
    ['two positions', { 'a.$': 1, 'b.$': 1 }, 31276],
    ['a position in the middle', { 'a.$.b': 1 }, 31394],
    ['an excluded position', { 'a.$': 0 }, 31395],
    ['a slice of nothing', { a: { $slice: [1, 0] } }, 28724],
    ['$meta', { a: { $meta: 'textScore' } }, 115],
  ])('refuses %s', (_what, spec, code) => {
    expect(refusalOf(() => compileProjection(spec))).toBe(code);
  });

  it('of $elemMatch take an element that is a list, as the filter does', () => {
    const lists = { _id: 2, a: [5, [1, 2]] };
    const condition = { $elemMatch: { b: { $exists: false } } };
    expect(compileFilter({ a: condition }).matches(lists)).toBe(true);
    expect(compileProjection({ a: condition }).apply(lists)).toEqual({ _id: 2, a: [[1, 2]] });
  });

  it('says which top-level fields it needs', () => {
    const fieldsOf = (spec: Doc) => compileProjection(spec).fields;
    expect(fieldsOf({ a: 1, 'b.c': 1 })).toEqual(new Set(['_id', 'a', 'b']));
    expect(fieldsOf({ x: { $add: ['$y', 1] }, _id: 0 })).toEqual(new Set(['y']));
    expect(fieldsOf({ a: 0 })).toBeNull();
    expect(fieldsOf({ x: '$$ROOT' })).toBeNull();
  });

  it('keeps prototype names as data', () => {
    const odd = JSON.parse('{"_id":1,"__proto__":{"a":1},"constructor":2}') as Doc;
    const spec = JSON.parse('{"__proto__":1,"constructor":1,"_id":0}') as Doc;
    expect(Object.keys(compileProjection(spec).apply(odd))).toEqual(['__proto__', 'constructor']);
    expect(compileProjection({ toString: 1, _id: 0 }).apply(odd)).toEqual({});
    expect(Object.keys(compileProjection({ _id: 0 }).apply(odd))).toEqual(['__proto__', 'constructor']);
  });
});

describe('sorts', () => {
  function sorted(spec: Doc, docs: readonly Doc[]): unknown[] {
    return [...docs].sort(compileSort(spec).compare).map((doc) => doc['_id']);
  }

  it('uses an array’s least element upwards and its greatest downwards', () => {
    const docs = [{ _id: 1, v: [5, 1] }, { _id: 2, v: 3 }, { _id: 3, v: [] }, { _id: 4 }, { _id: 5, v: [2, [0]] }];
    expect(sorted({ v: 1 }, docs)).toEqual([3, 4, 1, 5, 2]);
    expect(sorted({ v: -1 }, docs)).toEqual([5, 1, 2, 4, 3]);
  });

  it('compares elements of one array together in a compound sort', () => {
    const docs = [
      {
        _id: 1,
        a: [
          { x: 1, y: 9 },
          { x: 2, y: 0 },
        ],
      },
      { _id: 2, a: [{ x: 1, y: 3 }] },
    ];
    expect(sorted({ 'a.x': 1, 'a.y': 1 }, docs)).toEqual([2, 1]);
  });

  it('refuses parallel arrays and malformed specifications', () => {
    expect(refusalOf(() => compileSort({ a: 1, b: 1 }).keysOf({ a: [1], b: [2] }))).toBe(2);
    expect(refusalOf(() => compileSort({ a: 2 }))).toBe(15975);
    expect(refusalOf(() => compileSort({ a: 'up' }))).toBe(15974);
    expect(refusalOf(() => compileSort({ 'a..b': 1 }))).toBe(15998);
    expect(refusalOf(() => compileSort({ a: { $meta: 'textScore' } }))).toBe(2);
  });

  it('expands arrays into the keys of an index', () => {
    const keys = (doc: Doc, ...paths: string[]) =>
      extractKeys(
        doc,
        paths.map((path) => path.split('.')),
      );
    expect(keys({ a: 1 }, 'a', 'b')).toEqual([[1, null]]);
    expect(keys({ a: [1, 2], b: 3 }, 'b', 'a')).toEqual([[3, 1], [3, 2]]); // prettier-ignore
    expect(keys({ a: [] }, 'a')).toEqual([[undefined]]);
    expect(keys({ a: [] }, 'a.b')).toEqual([[null]]);
    expect(keys({ a: [{ b: 1 }, { b: [2, 3] }, 4, {}] }, 'a.b')).toEqual([[1], [2], [3], [null], [null]]);
    expect(keys({ a: [[1, 2], 3] }, 'a')).toEqual([[[1, 2]], [3]]);
    expect(keys({ a: [{ b: 1 }, { b: 2 }] }, 'a.0.b')).toEqual([[1]]);
    expect(keys({ a: [{ b: 1, c: 2 }] }, 'a.b', 'a.c')).toEqual([[1, 2]]);
    expect(refusalOf(() => keys({ a: [1], b: [1] }, 'a', 'b'))).toBe(171);
  });
});

const scalars = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, NaN, Infinity, -Infinity, -0, new MinKey(), new MaxKey()),
  fc.integer({ min: -3, max: 3 }),
  fc.integer({ min: -3, max: 3 }).map((n) => toDouble(n / 2)),
  fc.constantFrom(1n, 2n, 2n ** 53n + 1n, -(2n ** 63n)),
  fc
    .constantFrom('0', '1', '1.0', '0.5', '-1', '9007199254740993', 'NaN', 'Infinity', '1E40')
    .map((n) => Decimal128.fromString(n)),
  fc.double(),
  fc.constantFrom('', 'a', 'b', 'é', '\uffff', '😀', '\0', '\0s'),
  fc.constantFrom(new Date(0), new Date(-1), new ObjectId('0'.repeat(24)), new ObjectId('f'.repeat(24))),
  fc.constantFrom(
    new Timestamp({ t: 1, i: 1 }),
    new Timestamp({ t: 1, i: 2 }),
    new BSONRegExp('a'),
    new BSONRegExp('a', 'i'),
  ),
  fc.constantFrom(new Binary(Buffer.from('a')), new Binary(Buffer.from('a'), 5), new Binary(Buffer.from('ab'))),
);
const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalars,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));

describe('the order of values', () => {
  const settings = { seed: 20261121, numRuns: 3000 };

  it('is total: antisymmetric and transitive', () => {
    fc.assert(
      fc.property(values, values, values, (a, b, c) => {
        expect(compareValues(a, b) + compareValues(b, a)).toBe(0);
        if (compareValues(a, b) <= 0 && compareValues(b, c) <= 0) expect(compareValues(a, c)).toBeLessThanOrEqual(0);
        expect(compareValues(a, a)).toBe(0);
        expect(identicalValues(a, a)).toBe(true);
      }),
      settings,
    );
  });

  it('agrees with the keys that stand for values', () => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        expect(new Set([keyOf(a), keyOf(b)]).size === 1).toBe(compareValues(a, b) === 0);
        if (identicalValues(a, b)) expect(compareValues(a, b)).toBe(0);
      }),
      settings,
    );
  });

  it('agrees with what filters find', () => {
    fc.assert(
      fc.property(scalars, scalars, (a, b) => {
        const order = compareValues(a, b);
        const doc = { v: a };
        expect(compileFilter({ v: { $eq: b } }).matches(doc)).toBe(order === 0);
        expect(compileFilter({ v: { $in: [b] } }).matches(doc)).toBe(order === 0);
        expect(compileFilter({ v: { $ne: 'never' } }).matches(doc)).toBe(true);
      }),
      settings,
    );
  });
});
