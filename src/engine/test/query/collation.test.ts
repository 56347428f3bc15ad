import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { collationOf, type Strength } from '../../query/collation/collation.js';
import { textKey } from '../../query/collation/text-key.js';
import { compareStrings, compareValues } from '../../query/values/compare.js';

const STRENGTHS: readonly Strength[] = [1, 2, 3];
const SENSITIVITY = { 1: 'base', 2: 'accent', 3: 'variant' } as const;

/** Everything the README calls exact; of the letters in it ICU alone takes the Catalan l with a dot for two. */
const LETTERS = [...range(1, 0x17f), ...range(0x1e00, 0x1e9a)].filter((char) => !/[ĿŀŉĲĳ]/u.test(char));
const characters = fc.oneof(
  fc.constantFrom(...LETTERS),
  fc.constantFrom(...'aAbBéeÉßſæ'),
  fc.constantFrom('e\u0301', 'E\u0300', 'o\u0302\u0323', 'a\u0323\u0306', 'ss', 'AE'),
);
const words = fc.array(characters, { maxLength: 6 }).map((chosen) => chosen.join(''));

function range(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, n) => String.fromCodePoint(first + n));
}

describe('text under a collation', () => {
  it.each(STRENGTHS)('at strength %i compares as ICU compares Latin text', (strength) => {
    const { compare } = new Intl.Collator('en', { sensitivity: SENSITIVITY[strength] });
    fc.assert(
      fc.property(words, words, (a, b) => {
        expect(Math.sign(compareStrings(textKey(a, strength), textKey(b, strength)))).toBe(Math.sign(compare(a, b)));
      }),
      { numRuns: 1000, seed: 20261122 },
    );
  });

  it.each(STRENGTHS)('at strength %i tells each pair of letters and signs apart as ICU does', (strength) => {
    const { compare } = new Intl.Collator('en', { sensitivity: SENSITIVITY[strength] });
    const keys = LETTERS.map((char) => textKey(char, strength));
    const wrong: string[] = [];
    LETTERS.forEach((a, n) => {
      for (let other = 0; other < n; other++) {
        const order = Math.sign(compareStrings(keys[n]!, keys[other]!));
        if (order !== Math.sign(compare(a, LETTERS[other]!))) wrong.push(`${a} ${LETTERS[other]!}`);
      }
    });
    expect(wrong).toEqual([]);
  });

  it.each(STRENGTHS)('at strength %i is equal in any script to what ICU calls equal of one letter', (strength) => {
    const { compare } = new Intl.Collator('en', { sensitivity: SENSITIVITY[strength] });
    for (const [a, b] of [
      ['ΑΣ', 'ας'],
      ['Привет', 'привет'],
      ['ｆｕｌｌ', 'FULL'],
      ['ﬁn', 'fin'],
      ['²', '2'],
      ['が', 'か'],
      ['한글', '한글'.normalize('NFD')],
      ['straße', 'STRASSE'],
      ['x\u200by', 'xy'],
    ] as const) {
      const equal = textKey(a, strength) === textKey(b, strength);
      expect(equal, `${a} and ${b}`).toBe(compare(a, b) === 0);
    }
  });

  it('folds the text in lists and documents, and nothing else', () => {
    const { fold } = collationOf('en', 1);
    const when = new Date(5);
    const one = { A: ['É', 1, { b: 'X' }], __proto__: null, when };
    expect(compareValues(fold(one), fold({ A: ['e', 1, { b: 'x' }], when }))).toBe(0);
    expect(Object.keys(fold({ É: 1 }) as object)).toEqual(['É']);
    expect(fold(when)).toBe(when);
    const data = JSON.parse('{"__proto__": "É"}') as object;
    expect(Object.entries(fold(data) as object)).toEqual([['__proto__', 'e']]);
  });
});
