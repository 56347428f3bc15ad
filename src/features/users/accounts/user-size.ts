import { calculateObjectSize, type Document } from 'bson';
import { tooLarge } from '../../../errors.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { refuseHostileValue } from '../../documents/store/hostile-keys.js';
import type { User } from '../user.js';

/** Of the fields of an account: every request of a signed-in user reads it, and anybody may make one. */
export const MAX_USER_BYTES = 16 * 1024;

/** 413 DOCUMENT_TOO_LARGE for an account whose fields are more than MAX_USER_BYTES, measured as BSON. */
export function requireUserSize(user: User): void {
  if (fieldBytes(user) > MAX_USER_BYTES) throw userTooLarge();
}

/**
 * The same for the account with these values at these paths; one that was larger may become smaller; 400
 * for a value that no document may hold. Changes at the same time are each measured against the account as it was read.
 */
export function requireSizeAfter(user: User, values: Readonly<Record<string, unknown>>): void {
  const before = fieldBytes(user);
  let after = before;
  for (const [path, value] of Object.entries(values)) {
    // What BSON has a meaning of its own for cannot be measured.
    refuseHostileValue(value);
    after += sizeOf({ value }) - sizeOf({ value: at(user, path) });
  }
  if (after > Math.max(MAX_USER_BYTES, before)) throw userTooLarge();
}

function fieldBytes(user: User): number {
  return sizeOf(user) - sizeOf({ [HIDDEN_FIELD]: user[HIDDEN_FIELD] });
}

const sizeOf = (value: Document): number => calculateObjectSize(value, { ignoreUndefined: true });

function at(user: User, path: string): unknown {
  return path.split('.').reduce<unknown>((value, part) => (value as Document | null | undefined)?.[part], user);
}

function userTooLarge(): Error {
  const text = `Too large: a user may have ${MAX_USER_BYTES} bytes of fields; keep what is larger in another collection`;
  return tooLarge('DOCUMENT_TOO_LARGE', text);
}
