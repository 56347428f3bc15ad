import { isEmailAddress, MAX_PASSWORD_BYTES, passwordBytes } from '../../platform/schema/text-forms.js';
import { Problems } from '../documents/reply/problems.js';

export const MIN_PASSWORD_BYTES = 6;

/** The stored form of an address (decisions.md 2): trimmed, A-Z lower-cased. Says nothing about its being one. */
export function normaliseEmail(text: string): string {
  // Not toLowerCase(), which would turn some other scripts' letters into ASCII ones.
  return text.trim().replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** True if a normalised text has the form of an e-mail address. */
export function isEmail(text: string): boolean {
  return isEmailAddress(text) && text === normaliseEmail(text);
}

/** Notes what keeps a text from being a new password: its size in bytes of UTF-8 (decisions.md 2). */
export function checkNewPassword(password: string, problems: Problems, field: string): void {
  const bytes = passwordBytes(password);
  if (bytes < MIN_PASSWORD_BYTES) problems.add('length', `must have at least ${MIN_PASSWORD_BYTES} bytes`, field);
  else if (bytes > MAX_PASSWORD_BYTES) problems.add('length', `must have at most ${MAX_PASSWORD_BYTES} bytes`, field);
}

/** 400 VALIDATION_FAILED for a text that checkNewPassword finds fault with. */
export function requireNewPassword(password: string, field = 'password'): void {
  const problems = new Problems();
  checkNewPassword(password, problems, field);
  problems.throwIfAny();
}

/** What people type or paste around digits: spaces, line ends, dashes and invisible marks. */
const BETWEEN_DIGITS = /[\s\p{Pd}\p{Cf}]/gu;
const DIGIT = /\p{Nd}/u;

/** A code in the form in which it was given out: digits of any script as ASCII, nothing between them. */
export function foldCode(text: string): string {
  return text
    .normalize('NFKC')
    .replace(BETWEEN_DIGITS, '')
    .replace(/[^\x00-\x7f]/gu, asciiDigit);
}

/** Unicode lists the digits of each script from zero to nine, so a digit's value is its distance from the first. */
function asciiDigit(character: string): string {
  const code = character.codePointAt(0)!;
  let first = code;
  while (DIGIT.test(String.fromCodePoint(first - 1))) first -= 1;
  return DIGIT.test(character) ? String((code - first) % 10) : character;
}
