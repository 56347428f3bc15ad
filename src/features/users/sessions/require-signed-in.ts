import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import { requireUserId } from '../../access/access-rules.js';
import { sessionOf, type Caller } from '../../access/caller.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { User } from '../user.js';
import { findUser } from '../user-store.js';

/**
 * The signed-in user and the session behind the token; 401 without a good token, or when the account is gone or
 * disabled; 403 where the project wants a second factor that the session lacks, unless `isEnrolling`.
 */
export async function requireSignedIn(
  app: App,
  caller: Caller,
  { isEnrolling = false }: { isEnrolling?: boolean } = {},
): Promise<{ user: User; session: string | null }> {
  const { bearer } = caller;
  const id = findObjectId(isEnrolling && 'userId' in bearer ? bearer.userId : requireUserId(caller));
  const user = id && (await findUser(app, caller.project._id, id));
  if (!user || user[HIDDEN_FIELD].disabledAt) throw unauthenticated('TOKEN_INVALID', 'The access token is not valid');
  return { user, session: sessionOf(caller) };
}
