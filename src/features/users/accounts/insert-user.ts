import type { WriteTurn } from '../../../platform/database/database.js';
import type { App } from '../../../app.js';
import { AppError, conflict, tooLarge } from '../../../errors.js';
import type { Referrer } from '../../access/access-rules.js';
import type { Collection } from '../../collections/collection.js';
import { insertDocumentRecord } from '../../documents/write/insert-document.js';
import type { User } from '../user.js';
import { prepareUserStore } from '../user-store.js';
import { calculateObjectSize, type Document } from 'bson';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { rejectUnsafeValue } from '../../documents/store/unsafe-values.js';

/** Of the fields of an account: every request of a signed-in user reads it, and anyone may sign up. */
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
    rejectUnsafeValue(value);
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

/**
 * Stores a new user and what is `together` with it by one transaction; it refers to documents with the referrer's
 * rights. 409 EMAIL_TAKEN or, for another unique field, DUPLICATE_VALUE; 413 for one that is too large, 403
 * QUOTA_EXCEEDED in a full project.
 */
export async function insertUser(
  app: App,
  collection: Collection,
  user: User,
  referrer: Referrer | null = null,
  together?: WriteTurn,
): Promise<void> {
  requireUserSize(user);
  await prepareUserStore(app, collection.projectId);
  try {
    await insertDocumentRecord(app, collection, user, referrer, together && [together]);
  } catch (error) {
    throw isEmailConflict(error) ? emailTaken() : error;
  }
}

/** True if a write was refused because another account has the address. */
export function isEmailConflict(error: unknown): boolean {
  return error instanceof AppError && error.code === 'DUPLICATE_VALUE' && error.details?.[0]?.field === 'email';
}

export function emailTaken(): AppError {
  return conflict('EMAIL_TAKEN', 'There is already an account with this e-mail address');
}
