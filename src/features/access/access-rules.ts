import type { Document } from 'bson';
import { forbidden, unauthenticated } from '../../errors.js';
import type { Collection } from '../collections/collection.js';
import type { Caller } from './caller.js';

/**
 * Restricts a query to what the caller may see; null = everything. Always AND-ed in front of the client's own filter,
 * never merged with it.
 */
export type AccessFilter = Document | null;

/**
 * Which documents of a collection the caller may read (rest-api.md 5). 401 AUTH_REQUIRED or the token's own fault on a
 * private collection.
 */
export function readFilter(collection: Collection, caller: Caller): AccessFilter {
  const { rls } = collection;
  if (caller.key.type === 'secret' || rls?.mode !== 'private') return null;
  return { [rls.ownerField]: requireUserId(caller) };
}

/**
 * The writer: null = the project itself (secret key), else the end user, who may touch only their own documents. 403
 * WRITE_BLOCKED without RLS, 401 without a user.
 */
export function requireWriter(collection: Collection, caller: Caller): { ownerField: string; userId: string } | null {
  if (caller.key.type === 'secret') return null;
  if (!collection.rls) {
    throw forbidden(
      'WRITE_BLOCKED',
      'A publishable key may write only to collections with row-level security: use the secret key on a server',
    );
  }
  return { ownerField: collection.rls.ownerField, userId: requireUserId(caller) };
}

/** The end user's id; 401 with the code that says what is wrong with the token. */
export function requireUserId(caller: Caller): string {
  const { bearer } = caller;
  if (bearer.state === 'user') return bearer.userId;
  if (bearer.state === 'absent') {
    throw unauthenticated('AUTH_REQUIRED', 'Sign in first: this needs Authorization: Bearer <access token>');
  }
  throw bearer.code === 'TOKEN_EXPIRED'
    ? unauthenticated('TOKEN_EXPIRED', 'The access token has expired: refresh it')
    : unauthenticated('TOKEN_INVALID', 'The access token is not valid');
}
