import { forbidden } from '../../errors.js';
import type { Caller } from '../access/caller.js';
import { USERS } from '../collections/users-collection.js';

/**
 * As in `/api/data`; but the secret key may follow `users`, as it may have webhooks tell of them. 403 USERS_BLOCKED.
 */
export function requireFollowable(caller: Caller, collectionName: string): void {
  if (!collectionName.toLowerCase().startsWith(USERS)) return;
  if (collectionName === USERS && caller.key.type === 'secret') return;
  throw forbidden('USERS_BLOCKED', 'The users collection is reached through /api/userAuth only');
}
