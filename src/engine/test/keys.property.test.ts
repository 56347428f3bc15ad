import { Binary, Code, Decimal128, Double, MaxKey, MinKey, ObjectId, Timestamp } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareValues } from '../query/values/compare.js';
import { componentLimit, KeyWriter } from '../storage/encoding/key-encoding.js';

const SEED = 20261121;
const RUNS = 3000;

const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }),
  fc.bigInt({ min: -3n, max: 3n }),
);
const decimal = fc.oneof(
  fc.constantFrom('NaN', 'Infinity', '-Infinity', '0', '-0', '1E+6144', '-1E+6144', '1E-6176', '0.1', '0.10', '1.5'),
  fc
    .tuple(fc.bigInt({ min: -(10n ** 33n), max: 10n ** 33n }), fc.integer({ min: -40, max: 20 }))
    .map(([digits, exponent]) => `${digits}E${exponent}`),
  fc
    .tuple(fc.integer({ min: -5, max: 5 }), fc.integer({ min: -2, max: 2 }))
    .map(([digits, exponent]) => `${digits}E${exponent}`),
);
const number = fc.oneof(
  fc.integer({ min: -5, max: 5 }),
  fc.double(),
  fc.constantFrom(0.1, 1.5, -0, 2 ** 53, -(2 ** 63), Number.MIN_VALUE, Number.MAX_VALUE),
  fc.integer({ min: -3, max: 3 }).map((value) => new Double(value)),
  int64,
  decimal.map((text) => Decimal128.fromString(text)),
);
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 6 }),
  fc.string({ unit: fc.constantFrom('\0', '\u0001', '\u0002', 'a', '\uffff', '\u{1f600}'), maxLength: 4 }),
);
const scalar = fc.oneof(
  number,
  text,
  fc.constant(null),
  fc.boolean(),
  fc.integer({ min: -1e12, max: 1e12 }).map((time) => new Date(time)),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
  fc.tuple(fc.uint8Array({ maxLength: 4 }), fc.constantFrom(0, 5)).map(([bytes, kind]) => new Binary(bytes, kind)),
  fc.tuple(fc.nat(), fc.nat()).map(([t, i]) => new Timestamp({ t, i })),
  text.filter((code) => !code.includes('\0')).map((code) => new Code(code)),
  fc.constantFrom(new MinKey(), new MaxKey()),
);
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'ab', ''), tie('value'), { maxKeys: 3 }),
  ),
})).value;

function keyOf(item: unknown, descending: boolean): Buffer {
  return new KeyWriter().restart().component(item, descending, Infinity).take();
}

describe('keys', () => {
  it('compare byte by byte as their values compare in BSON order, descending ones the other way round', () => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        const order = Math.sign(compareValues(a, b));
        expect(Math.sign(keyOf(a, false).compare(keyOf(b, false)))).toBe(order);
        expect(Math.sign(keyOf(a, true).compare(keyOf(b, true))) + order).toBe(0);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('put numbers of all kinds into one exact order', () => {
    fc.assert(
      fc.property(number, number, (a, b) => {
        expect(Math.sign(keyOf(a, false).compare(keyOf(b, false)))).toBe(Math.sign(compareValues(a, b)));
      }),
      { numRuns: RUNS * 3, seed: SEED },
    );
  });

  it('keep the order of compound keys, and no key is the beginning of another', () => {
    const pair = fc.tuple(value, value);
    fc.assert(
      fc.property(pair, pair, ([a1, a2], [b1, b2]) => {
        const key = (first: unknown, second: unknown) =>
          new KeyWriter().restart().component(first, false, Infinity).component(second, true, Infinity).take();
        const order = Math.sign(compareValues(a1, b1)) || -Math.sign(compareValues(a2, b2));
        expect(Math.sign(key(a1, a2).compare(key(b1, b2))) + 0).toBe(order + 0);
        const [left, right] = [keyOf(a1, false), keyOf(b1, false)];
        if (order !== 0 && !left.equals(right)) expect(left.subarray(0, right.length).equals(right)).toBe(false);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('stay within their share, different values with different keys', () => {
    const limit = componentLimit(32);
    const writer = new KeyWriter();
    const cut = (item: unknown): Buffer => writer.restart().component(item, false, limit).take();
    const long = 'x'.repeat(10_000);
    expect(cut(long).length).toBe(limit);
    expect(writer.cut).toBe(true);
    expect(cut(`${long}a`).equals(cut(`${long}b`))).toBe(false);
    expect(cut('short').length).toBeLessThan(limit);
    expect(writer.cut).toBe(false);
  });
});
