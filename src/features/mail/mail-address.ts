import { fullFormats } from 'ajv-formats/dist/formats.js';
import { invalid } from '../../errors.js';

const MAX_ADDRESS_CHARACTERS = 320;
const MAX_RECIPIENTS = 50;
const EMAIL = fullFormats.email as RegExp;

/** A bare address such as `ann@example.com`: one line, no name, no list. */
export function isMailAddress(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_ADDRESS_CHARACTERS && EMAIL.test(value);
}

/**
 * True if a text can stand in a header of a mail: no line break, in whatever spelling, and no other control character.
 */
export function isOneLine(text: string): boolean {
  return !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text);
}

/** A sender: a bare address, or `Name <address>` on one line. */
export function isSender(value: unknown): value is string {
  if (typeof value !== 'string' || !isOneLine(value)) return false;
  const named = /^[^<>",;]{1,100}<([^<>]+)>$/.exec(value);
  return isMailAddress(named ? named[1] : value);
}

/** `to` or `replyTo`: an address or a non-empty list of them; 400 with the contract's texts (rest-api.md 4.4). */
export function readAddresses(value: unknown, field: 'to' | 'replyTo'): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0)
    throw invalid('INVALID_MAIL', field === 'to' ? 'Recipient list cannot be empty' : 'Reply-to list cannot be empty');
  if (list.length > MAX_RECIPIENTS)
    throw invalid('INVALID_MAIL', `${field} may hold at most ${MAX_RECIPIENTS} addresses`);
  for (const address of list) {
    if (!isMailAddress(address)) {
      const shown = typeof address === 'string' ? ` "${address.slice(0, 80).replace(/[\r\n\0]+/g, ' ')}"` : '';
      throw invalid('INVALID_MAIL', `${field} holds an invalid email address${shown}`);
    }
  }
  return list as string[];
}
