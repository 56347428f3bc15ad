import type { Access } from '../../../http/routes/route.js';
import { ENROLLING_DESCRIPTION, SIGNED_IN_DESCRIPTION } from '../../access/describe-access.js';
import { giveCaller, type ByKey } from '../../access/key-access.js';
import { callerOf, authenticateKey } from '../../access/require-key.js';
import type { User } from '../user.js';
import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import { requireUserId } from '../../access/access-rules.js';
import { sessionOf, type Caller } from '../../access/caller.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { findUser } from '../user-store.js';

interface ByUser extends ByKey {
  user: User;
  /** The session behind the access token. */
  session: string | null;
}

/** Any live key with the access token of a user whose account may be used. */
export const SIGNED_IN: Access<ByUser> = {
  ...SIGNED_IN_DESCRIPTION,
  admit: authenticateKey,
  give: async (app, ctx) => ({ ...giveCaller(app, ctx), ...(await requireSignedIn(app, callerOf(ctx))) }),
};

/** The same for what a user may do who has to enrol a second factor first. */
export const ENROLLING: Access<ByUser> = {
  ...ENROLLING_DESCRIPTION,
  admit: authenticateKey,
  give: async (app, ctx) => ({
    ...giveCaller(app, ctx),
    ...(await requireSignedIn(app, callerOf(ctx), { isEnrolling: true })),
  }),
};

/**
 * The signed-in user and the session behind the token; 401 without a good token, or when the account is gone or
 * disabled; 403 where the project wants a second factor that the session lacks, unless `isEnrolling`.
 */
async function requireSignedIn(
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
