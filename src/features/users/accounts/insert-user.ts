import type { App } from '../../../app.js';
import { AppError, conflict } from '../../../errors.js';
import type { Referrer } from '../../access/access-rules.js';
import type { Collection } from '../../collections/collection.js';
import { insertDocumentRecord } from '../../documents/store/document-store.js';
import type { User } from '../user.js';
import { requireUserSize } from './user-size.js';
import { prepareUserStore } from '../user-store.js';

/**
 * Stores a new user by one write; it refers to documents with the referrer's rights. 409 EMAIL_TAKEN or, for another
 * unique field, DUPLICATE_VALUE; 413 for one that is too large, 403 QUOTA_EXCEEDED in a full project.
 */
export async function insertUser(
  app: App,
  collection: Collection,
  user: User,
  referrer: Referrer | null = null,
): Promise<void> {
  requireUserSize(user);
  await prepareUserStore(app, collection.projectId);
  try {
    await insertDocumentRecord(app, collection, user, referrer);
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
