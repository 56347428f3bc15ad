import { Decimal128, Long, ObjectId, serialize, type Document } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeResults } from '../../../src/features/documents/reply/encode-results.js';
import { openSeed } from '../../helpers/seed.js';

/** What a client receives for what a pipeline yielded. */
function received(...results: Document[]): unknown {
  const stored = results.map((result) => Buffer.from(serialize(result)));
  return JSON.parse(Buffer.from([...encodeResults(stored)].join(''), 'latin1').toString());
}

const decimals = fc.oneof(
  fc
    .tuple(fc.bigInt({ min: -(10n ** 34n) + 1n, max: 10n ** 34n - 1n }), fc.integer({ min: -6176, max: 6111 }))
    .map(([digits, exponent]) => `${digits}E${exponent}`),
  fc.tuple(fc.integer(), fc.integer({ min: -12, max: 3 })).map(([digits, exponent]) => `${digits}E${exponent}`),
  fc.constantFrom('0', '-0', '0.00', '0E+10', '-0E-7', 'NaN', 'Infinity', '-Infinity', '1E+6111', '1E-6176'),
);

describe('encodeResults', () => {
  it('writes every decimal as the text that the type gives it', () => {
    fc.assert(
      fc.property(decimals, (text) => {
        const value = Decimal128.fromString(text);
        expect(received({ value })).toEqual([{ value: value.toString() }]);
      }),
      { numRuns: 2000, seed: openSeed('decimals') },
    );
  });

  it('writes whole numbers as numbers as far as JSON can hold them, and as texts beyond', () => {
    const near = fc.constantFrom(2n ** 53n, -(2n ** 53n), 10n ** 9n, 0n, 2n ** 31n);
    const around = fc.tuple(near, fc.bigInt({ min: -3n, max: 3n })).map(([one, other]) => one + other);
    const any = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(fc.oneof(around, any), (value) => {
        const isExact = value <= 2n ** 53n && value >= -(2n ** 53n);
        expect(received({ value: Long.fromBigInt(value) })).toEqual([{ value: isExact ? Number(value) : `${value}` }]);
        if (BigInt.asIntN(32, value) === value) expect(received({ n: Number(value) })).toEqual([{ n: Number(value) }]);
      }),
      { numRuns: 2000, seed: openSeed('whole numbers') },
    );
  });

  it('writes what it leaves to the slower way beside the rest', () => {
    const _id = new ObjectId();
    expect(received({ _id, list: [Decimal128.fromString('NaN'), 7] }, { n: Decimal128.fromString('1.10') })).toEqual([
      { _id: _id.toHexString(), list: ['NaN', 7] },
      { n: '1.10' },
    ]);
  });
});
