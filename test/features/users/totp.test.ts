import { expect, it } from 'vitest';
import { findTotpStep, generateTotpSecret, toBase32, totpCode } from '../../../src/features/users/factors/totp.js';

/** Appendix B of RFC 6238: the last six of its eight digits. */
it.each([
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
])('at second %i has the code of the standard', (seconds, code) => {
  const secret = toBase32(Buffer.from('12345678901234567890'));
  expect(totpCode(secret, seconds * 1000)).toBe(code);
  expect(findTotpStep(secret, code, seconds * 1000)).toBe(Math.floor(seconds / 30));
});

it('takes one step before and after, and no other text', () => {
  const secret = generateTotpSecret();
  const now = 1_000_000_000_000;
  const near = [-1, 0, 1].map((step) => findTotpStep(secret, totpCode(secret, now + step * 30_000), now));
  const present = Math.floor(now / 30_000);
  expect(near).toEqual([present - 1, present, present + 1]);
  for (const text of ['', '1', '１２３４５６', `${totpCode(secret, now)}0`])
    expect(findTotpStep(secret, text, now)).toBeNull();
});
