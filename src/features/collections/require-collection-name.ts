import { forbidden, invalid } from '../../errors.js';

const COLLECTION_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** True if a text can name a collection (decisions.md 3). Names are case-sensitive. */
export function isCollectionName(text: string): boolean {
  return COLLECTION_NAME.test(text);
}

/**
 * Refuses what cannot name a new collection: 400 for its form, 403 USERS_BLOCKED for `users…` in any spelling, whose
 * paths are closed (rest-api.md 2.6).
 */
export function requireCollectionName(name: string): void {
  if (!isCollectionName(name)) {
    throw invalid('INVALID_NAME', 'A collection name has 1 to 64 letters, digits, _ or - and starts with a letter');
  }
  if (name.toLowerCase().startsWith('users')) {
    throw forbidden('USERS_BLOCKED', 'Names beginning with "users" are kept for end-user accounts: choose another');
  }
}
