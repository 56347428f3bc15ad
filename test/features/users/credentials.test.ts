import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isEmail, normaliseEmail } from '../../../src/features/users/credentials.js';

describe('e-mail addresses', () => {
  it.each(['a@b.c', 'ada.lovelace+tag@example.co.uk', "o'neil@xn--bcher-kva.example", 'x_1@sub.domain.example'])(
    'admit %s',
    (text) => expect(isEmail(text)).toBe(true),
  );

  it.each([
    ['nothing', ''],
    ['no @', 'ada.example.com'],
    ['no domain', 'ada@'],
    ['no dot in the domain', 'ada@localhost'],
    ['two @', 'ada@b@example.com'],
    ['a space', 'ada lovelace@example.com'],
    ['a line break and a header', 'ada@example.com\r\nBcc: eve@example.com'],
    ['a leading dot', '.ada@example.com'],
    ['a Cyrillic а', 'аda@example.com'],
    ['full-width letters', 'ａda@example.com'],
    ['a Kelvin sign', 'boo\u212A@example.com'],
    ['a zero-width space', 'ada\u200b@example.com'],
    ['a quoted part', '"ada"@example.com'],
    ['an address literal', 'ada@[127.0.0.1]'],
    ['65 characters before @', `${'a'.repeat(65)}@example.com`],
    ['10,000 characters', `${'a'.repeat(9_988)}@example.com`],
    ['a long run of dots', `${'a.'.repeat(100)}@example.com`],
  ])('refuse %s', (_what, text) => expect(isEmail(normaliseEmail(text))).toBe(false));

  it('are trimmed and lower-cased, letters of ASCII only', () => {
    expect(normaliseEmail('  Ada@Example.COM\n')).toBe('ada@example.com');
    expect(normaliseEmail('boo\u212A@example.com')).toBe('boo\u212A@example.com');
  });

  it('are trimmed and lower-cased for good by the first time, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        expect(normaliseEmail(normaliseEmail(text))).toBe(normaliseEmail(text));
      }),
      { seed: 20_261_121 },
    );
  });
});
