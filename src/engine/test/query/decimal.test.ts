import { Decimal128 } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addDecimals,
  closeDecimal,
  compareDecimals,
  decimalOf,
  divideDecimals,
  multiplyDecimals,
  openDecimal,
  parseDecimal,
  remainderDecimals,
  roundDecimal,
} from '../../query/values/decimal.js';

const settings = { seed: 20261121, numRuns: 2000 };
const open = (text: string) => openDecimal(Decimal128.fromString(text));
const small = fc.tuple(fc.bigInt({ min: -(10n ** 16n), max: 10n ** 16n }), fc.integer({ min: -8, max: 8 }));
const textOf = ([coefficient, exponent]: readonly [bigint, number]) => `${String(coefficient)}E${String(exponent)}`;
/** The value times 10^16, as an integer. */
const scaled = ([coefficient, exponent]: readonly [bigint, number]) => coefficient * 10n ** BigInt(exponent + 16);

describe('decimals', () => {
  it('reads and writes what the driver does, the special values included', () => {
    const texts = ['0', '-0', '1.10', '0E-6176', '9.999999999999999999999999999999999E+6144', '-1E-6176', 'NaN', 'Infinity', '-Infinity']; // prettier-ignore
    for (const text of texts) {
      expect(closeDecimal(open(text)).toString()).toBe(Decimal128.fromString(text).toString());
      expect(closeDecimal(parseDecimal(text)!).toString()).toBe(Decimal128.fromString(text).toString());
    }
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 34n) + 1n, max: 10n ** 34n - 1n }),
        fc.integer({ min: -6176, max: 6111 }),
        (c, e) => {
          const text = textOf([c, e]);
          expect(closeDecimal(parseDecimal(text)!).toString()).toBe(Decimal128.fromString(text).toString());
        },
      ),
      settings,
    );
  });

  it('refuses text that is no number', () => {
    for (const text of ['', 'abc', '1e', '.', '1.2.3', '0x10', ' 1']) expect(parseDecimal(text)).toBeNull();
  });

  it('computes exactly where 34 digits suffice', () => {
    fc.assert(
      fc.property(small, small, (a, b) => {
        const [x, y] = [open(textOf(a)), open(textOf(b))];
        const equals = (got: ReturnType<typeof open>, want: bigint, power: number) =>
          compareDecimals(got, parseDecimal(`${String(want)}E${String(power)}`)!) === 0;
        expect(equals(addDecimals(x, y), scaled(a) + scaled(b), -16)).toBe(true);
        expect(equals(multiplyDecimals(x, y), scaled(a) * scaled(b), -32)).toBe(true);
        if (b[0] !== 0n) {
          expect(equals(remainderDecimals(x, y), scaled(a) % scaled(b), -16)).toBe(true);
          const back = multiplyDecimals(divideDecimals(multiplyDecimals(x, y), y), open('1'));
          expect(compareDecimals(openDecimal(closeDecimal(back)), x)).toBe(0);
        }
        expect(compareDecimals(x, y)).toBe(scaled(a) < scaled(b) ? -1 : scaled(a) > scaled(b) ? 1 : 0);
      }),
      settings,
    );
  });

  it('rounds to 34 digits, half to even', () => {
    const divide = (a: string, b: string) => closeDecimal(divideDecimals(open(a), open(b))).toString();
    expect(divide('1', '3')).toBe('0.3333333333333333333333333333333333');
    expect(divide('2', '3')).toBe('0.6666666666666666666666666666666667');
    expect(divide('1', '8')).toBe('0.125');
    expect(divide('1', '0')).toBe('Infinity');
    expect(divide('0', '0')).toBe('NaN');
    const round = (text: string, place: number) => closeDecimal(roundDecimal(open(text), place, 'round')).toString();
    expect(round('2.5', 0)).toBe('2');
    expect(round('3.5', 0)).toBe('4');
    expect(round('-1.25', 1)).toBe('-1.2');
  });

  it('compares with doubles by their exact value', () => {
    expect(compareDecimals(decimalOf(0.1), open('0.1'))).toBe(1);
    expect(compareDecimals(decimalOf(0.5), open('0.50'))).toBe(0);
    expect(compareDecimals(decimalOf(1e300), open('1E300'))).not.toBe(0);
    expect(compareDecimals(decimalOf(5e-324), open('0'))).toBe(1);
    expect(compareDecimals(decimalOf(NaN), open('-Infinity'))).toBe(-1);
  });
});
