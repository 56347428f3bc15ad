import fc from 'fast-check';
import { Decimal128, Long, MaxKey, MinKey, ObjectId } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { docFromApp } from '../../codec/app-values.js';
import { decodeDocument } from '../../codec/decode.js';
import { encodeDocument } from '../../codec/encode.js';
import { readEqualities } from '../../query/match/equalities.js';
import { RangedFilter } from '../../query/match/ranged-filter.js';
import { compileFilter } from '../../query/match/match.js';

const SEED = 20261121;
const FIELDS = ['a', 'b', 'ab', '', '__proto__'];

const plain = fc.oneof(
  fc.constantFrom<unknown>(0, 1, -1, 1.5, 2 ** 31, -(2 ** 31), '', 'a', 'é', 'a\u0000', '\u{1F600}', true, false, null),
  fc.constantFrom<unknown>(new Date(0), new Date(5), new ObjectId('00000000000000000000000a')),
);
const rare = fc.constantFrom<unknown>(
  -0,
  NaN,
  undefined,
  Long.fromNumber(1),
  Decimal128.fromString('1'),
  new ObjectId('00000000000000000000000b'),
  { a: 1 },
);
const stored = fc.oneof(plain, rare, fc.array(plain, { maxLength: 2 }));
const field = fc.constantFrom(...FIELDS);

describe('filters of plain equalities', () => {
  it('say the same of stored bytes as of the decoded document, or nothing', () => {
    let decided = 0;
    fc.assert(
      fc.property(
        fc.array(fc.tuple(field, stored), { maxLength: 4 }),
        fc.array(fc.tuple(field, plain), { minLength: 1, maxLength: 3 }),
        (fields, conditions) => {
          const bytes = encodeDocument(docFromApp(Object.fromEntries(fields)));
          const filter = compileFilter({ $and: conditions.map((condition) => Object.fromEntries([condition])) });
          const known = filter.testBytes(bytes);
          if (known === undefined) return;
          decided++;
          expect(known).toBe(filter.matches(decodeDocument(bytes)));
        },
      ),
      { numRuns: 3000, seed: SEED },
    );
    expect(decided).toBeGreaterThan(1000);
  });

  it('say the same of ranges of numbers', () => {
    const bound = fc.constantFrom(-(2 ** 53), -1, 0, 1, 1.5, 2 ** 31, Number.MAX_SAFE_INTEGER, 1e300);
    const held = fc.oneof(stored, bound, fc.constantFrom<unknown>(Infinity, -Infinity, new MinKey(), new MaxKey()));
    const range = fc.tuple(field, bound, bound, fc.boolean());
    const decided = [0, 0];
    fc.assert(
      fc.property(
        fc.array(fc.tuple(field, held), { maxLength: 4 }),
        fc.array(range, { minLength: 1, maxLength: 2 }),
        fc.array(fc.tuple(field, plain), { maxLength: 1 }),
        (fields, ranges, equals) => {
          const bytes = encodeDocument(docFromApp(Object.fromEntries(fields)));
          const asked = ranges.map(([name, from, to, isOptional]) =>
            isOptional
              ? { $nor: [{ [name]: { $gt: to } }, { [name]: { $lt: from } }] }
              : { [name]: { $gte: from, $lte: to } },
          );
          const filter = compileFilter({ ...Object.fromEntries(equals), $and: asked });
          expect(filter).toBeInstanceOf(RangedFilter);
          const known = filter.testBytes(bytes);
          if (known === undefined) return;
          decided[Number(known)]!++;
          expect(known).toBe(filter.matches(decodeDocument(bytes)));
        },
      ),
      { numRuns: 3000, seed: SEED },
    );
    expect(Math.min(...decided)).toBeGreaterThan(200);
  });

  it('leave to decoding what bytes cannot decide', () => {
    const { equalities } = compileFilter({ a: 1 });
    expect(equalities).toEqual([{ path: 'a', value: 1 }]);
    for (const value of [[1], [], Long.fromNumber(1), Decimal128.fromString('1')]) {
      expect(compileFilter({ a: 1 }).testBytes(encodeDocument(docFromApp({ a: value })))).toBeUndefined();
    }
  });

  it('take the last of two fields of one name, as decoding does', () => {
    const [first, second] = [encodeDocument({ a: 1 }), encodeDocument({ a: 2 })];
    const twice = Buffer.concat([first.subarray(0, -1), second.subarray(4)]);
    twice.writeInt32LE(twice.length, 0);
    expect(compileFilter({ a: 1 }).testBytes(twice)).toBe(false);
    expect(compileFilter({ a: 2 }).testBytes(twice)).toBe(true);
  });

  it('may be nested under $and', () => {
    expect(readEqualities({ $and: [{ $and: [{ a: 1 }, {}] }, { b: null }] })).toEqual([
      { path: 'a', value: 1 },
      { path: 'b', value: null },
    ]);
  });

  it('may be written with $eq', () => {
    expect(readEqualities({ a: { $eq: 1 }, b: { $eq: null } })).toEqual([
      { path: 'a', value: 1 },
      { path: 'b', value: null },
    ]);
  });

  it.each([
    { a: { $eq: 1, $gt: 0 } },
    { a: {} },
    { a: { $eq: { $eq: 1 } } },
    { 'a.b': 1 },
    { a: { $gt: 1 } },
    { a: NaN },
    { a: -0 },
    { a: [1] },
    { a: { b: 1 } },
    { é: 1 },
    { a: undefined },
    { $or: [{ a: 1 }] },
    { $and: [] },
    { $and: [{ $and: [] }] },
  ])('are not %j', (filter) => {
    expect(readEqualities(filter)).toBeNull();
  });
});
