import { MAX_PASSWORD_BYTES } from '../../platform/secrets/password.js';
import { Problems } from '../documents/reply/problems.js';

export const MAX_EMAIL_CHARACTERS = 254;
const MAX_LOCAL_CHARACTERS = 64;
export const MIN_PASSWORD_BYTES = 6;

// ASCII only, so that no two addresses look alike; a domain of another script has its xn-- form.
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** The stored form of an address (decisions.md 2): trimmed, A-Z lower-cased. Says nothing about its being one. */
export function normaliseEmail(text: string): string {
  // Not toLowerCase(), which would turn some other scripts' letters into ASCII ones.
  return text.trim().replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** True if a normalised text has the form of an e-mail address. */
export function isEmail(text: string): boolean {
  if (text.length > MAX_EMAIL_CHARACTERS) return false;
  const at = text.lastIndexOf('@');
  return at > 0 && at <= MAX_LOCAL_CHARACTERS && LOCAL.test(text.slice(0, at)) && DOMAIN.test(text.slice(at + 1));
}

/** Notes what keeps a text from being a new password: its size in bytes of UTF-8 (decisions.md 2). */
export function checkNewPassword(password: string, problems: Problems, field: string): void {
  const bytes = Buffer.byteLength(password);
  if (bytes < MIN_PASSWORD_BYTES) problems.add('length', `must have at least ${MIN_PASSWORD_BYTES} bytes`, field);
  else if (bytes > MAX_PASSWORD_BYTES) problems.add('length', `must have at most ${MAX_PASSWORD_BYTES} bytes`, field);
}

/** 400 VALIDATION_FAILED for a text that checkNewPassword finds fault with. */
export function requireNewPassword(password: string, field = 'password'): void {
  const problems = new Problems();
  checkNewPassword(password, problems, field);
  problems.throwIfAny();
}
