import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { compilePattern } from '../../query/patterns/regex.js';

function finds(pattern: string, text: string, options = ''): boolean {
  return compilePattern(pattern, options).test(text);
}

describe('regular expressions', () => {
  it.each<[string, string, string, boolean]>([
    ['^a.c$', 'abc', '', true],
    ['^a.c$', 'a\nc', '', false],
    ['^a.c$', 'a\nc', 's', true],
    ['a$', 'a\n', '', true],
    ['a$', 'a\n\n', '', false],
    ['(b+a$)', 'ba\n', '', true],
    ['^b', 'a\nb', '', false],
    ['^b', 'a\nb', 'm', true],
    ['a$', 'a\nb', 'm', true],
    ['a\\z', 'a\n', '', false],
    ['\\Ab', 'a\nb', 'm', false],
    ['É', 'é', 'i', true],
    ['straße', 'STRAßE', 'i', true],
    ['^\\w+$', 'é', '', false],
    ['\\bfoo\\b', 'a foo b', '', true],
    ['\\bfoo\\b', 'afoo', '', false],
    ['a b # c', 'ab', 'x', true],
    ['[ ]b', ' b', 'x', true],
    ['(?i)AB', 'ab', '', true],
    ['[[:digit:]]+', 'a1', '', true],
    ['\\x41\\.', 'A.', '', true],
    ['\\p{Lu}', 'aÉ', '', true],
    ['^[^a-c]$', 'd', '', true],
    ['[]a]', ']', '', true],
    ['a{2,3}', 'aa', '', true],
    ['^(ab|cd)?e', 'cde', '', true],
    ['😀.', '😀x', '', true],
    ['^.$', '😀', '', true],
    ['\\Qa.b\\E', 'a.b', '', true],
    ['\\Qa.b\\E', 'axb', '', false],
    ['\\h', '\t', '', true],
    ['a/b', 'a/b', '', true],
    ['a-b', 'a-b', '', true],
    ['}', '}', '', true],
  ])('%j in %j with %j: %j', (pattern, text, options, answer) => {
    expect(finds(pattern, text, options)).toBe(answer);
  });

  it.each(['(', '[a', 'a**', '(?=a)', '(?<!a)b', '(a)\\1', 'a++', '(?>a)', '\\'])('refuses %j', (pattern) => {
    expect(() => finds(pattern, 'a')).toThrow(expect.objectContaining({ code: 51091 }) as Error);
  });

  it('gives positions and groups, whichever engine runs the pattern', () => {
    expect(compilePattern('(a)(x)?b', '').find('zzab', 0)).toEqual({ start: 2, end: 4, groups: ['a', null] });
    expect(compilePattern('(a)+(x)*b', '').find('zzab', 0)).toEqual({ start: 2, end: 4, groups: ['a', null] });
    expect(compilePattern('b', '').find('abab', 2)).toEqual({ start: 3, end: 4, groups: [] });
    expect(compilePattern('(b)+', '').find('abab', 2)).toEqual({ start: 3, end: 4, groups: ['b'] });
  });

  it('finds the same with both engines', async () => {
    const atom = fc.constantFrom(
      'a',
      'b',
      '.',
      '[ab]',
      '[^a]',
      '\\w',
      '\\d',
      '\\s',
      '\\n',
      '\\W',
      'é',
      '😀',
      '\\.',
      '[a-c1]',
      '\\p{L}',
    );
    const piece = fc.oneof(
      atom,
      fc.tuple(atom, fc.constantFrom('?', '{2}', '{1,2}', '??')).map((parts) => parts.join('')),
      fc.tuple(atom, atom).map(([one, other]) => `(${one}|${other})`),
      fc.constantFrom('\\b', '\\B', '^', '\\z', '(?:ab|b)?', '(a)(b)?'),
    );
    const patterns = fc
      .tuple(
        fc.constantFrom('', '^', '\\A'),
        fc.array(piece, { minLength: 1, maxLength: 5 }),
        fc.constantFrom('', '$', '\\Z', '.*', 'a+', '\\w*?'),
      )
      .map(([start, pieces, end]) => start + pieces.join('') + end);
    const texts = fc
      .array(fc.constantFrom('a', 'b', 'c', '1', ' ', '\n', 'é', '😀', 'A', '.', '_'), { maxLength: 8 })
      .map((parts) => parts.join(''));
    const same = fc.property(patterns, texts, fc.constantFrom('', 'i', 'm', 's', 'ims'), (pattern, text, options) => {
      // A repeated group always goes to the linear engine.
      const linear = compilePattern(`(?:${pattern}){1}`, options);
      expect(compilePattern(pattern, options).test(text)).toBe(linear.test(text));
    });
    for (let part = 0; part < 100; part++) {
      // All searches of one turn have a time in common.
      await nextTurn();
      fc.assert(same, { seed: 20261121 + part, numRuns: 200 });
    }
  });

  it('finds the same in a text that is watched', async () => {
    const patterns = [
      '(((a)))',
      '(a|b)+c',
      '(?:a|b){3}c$',
      'abab'.repeat(80),
      '(x)|c$',
      '^(?:ab)+$',
      '\\b(z+)?a',
      'B(ab)*',
    ];
    for (const pattern of patterns) {
      for (const text of ['ab'.repeat(200), `${'ab'.repeat(199)}c`]) {
        const long = text.repeat(25);
        const { test, find } = compilePattern(pattern, '');
        const place = RE2JS.compile(pattern.replace(/\$$/, '\\z')).matcher(long);
        const isFound = place.find();
        await nextTurn();
        expect([pattern, test(long)]).toEqual([pattern, isFound]);
        await nextTurn();
        const found = find(long, 0);
        expect([pattern, found && [found.start, found.end]]).toEqual([
          pattern,
          isFound ? [place.start(), place.end()] : null,
        ]);
      }
    }
  });

  it('never takes more than linear time, nor longer than one document may', async () => {
    const text = `${'a'.repeat(60_000)}!`;
    for (const pattern of [
      '(a+)+$',
      '(a|a)*b',
      'a*a*a*b',
      '(?:a?){30}a{30}b',
      '^(\\w+\\s?)*$',
      'a+b',
      '.*.*=.*',
      'x?'.repeat(40),
      `${'a{999}'.repeat(50)}b`,
      `${'a'.repeat(20_000)}b`,
      `${'(||)'.repeat(15)}b`,
    ]) {
      await nextTurn();
      // Compiled before: that takes what the pattern is long.
      finds(pattern, 'a');
      await nextTurn();
      const start = process.cpuUsage();
      let ended = 'in time';
      try {
        finds(pattern, text);
        compilePattern(pattern, '').find(text, 0);
      } catch (error) {
        ended = (error as { code?: unknown }).code === 50 ? 'in time' : String(error);
      }
      const { user } = process.cpuUsage(start);
      // A backtracking engine would need minutes to centuries for most of these, the linear one seconds to find the
      // place.
      expect([pattern, ended]).toEqual([pattern, 'in time']);
      expect(user / 1000, pattern).toBeLessThan(400);
    }
  });
});
