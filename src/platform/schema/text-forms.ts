export const MAX_EMAIL_CHARACTERS = 254;
const MAX_LOCAL_CHARACTERS = 64;

// ASCII only, so that no two addresses look alike; a domain of another script has its xn-- form.
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

/** True for a bare e-mail address such as `ann@example.com`, in letters of either case: one line, no name, no list. */
export function isEmailAddress(text: string): boolean {
  if (text.length > MAX_EMAIL_CHARACTERS) return false;
  const at = text.lastIndexOf('@');
  return at > 0 && at <= MAX_LOCAL_CHARACTERS && LOCAL.test(text.slice(0, at)) && DOMAIN.test(text.slice(at + 1));
}

/** A text without line breaks, in whatever spelling, and other control characters: it can stand in a header. */
export function isOneLine(text: string): boolean {
  return !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text);
}

/** bcrypt reads no further (decisions.md 2). */
export const MAX_PASSWORD_BYTES = 72;

/**
 * The form of a password that is hashed: NFKC, as NIST SP 800-63B asks, so that it is the same from every keyboard. One
 * that would be longer than bcrypt reads in that form stays as it was typed.
 */
export function passwordForm(password: string): string {
  const form = password.normalize('NFKC');
  return Buffer.byteLength(form) <= MAX_PASSWORD_BYTES ? form : password;
}

/** The bytes of a password that count for its limits. */
export function passwordBytes(password: string): number {
  return Buffer.byteLength(passwordForm(password));
}
