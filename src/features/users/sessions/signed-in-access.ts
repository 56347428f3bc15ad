import type { Access } from '../../../http/routes/route.js';
import { ENROLLING_DESCRIPTION, SIGNED_IN_DESCRIPTION } from '../../access/describe-access.js';
import { giveCaller, type ByKey } from '../../access/key-access.js';
import { callerOf, settleKey } from '../../access/require-key.js';
import type { User } from '../user.js';
import { requireSignedIn } from './require-signed-in.js';

interface ByUser extends ByKey {
  user: User;
  /** The session behind the access token. */
  session: string | null;
}

/** Any live key with the access token of a user whose account may be used. */
export const SIGNED_IN: Access<ByUser> = {
  ...SIGNED_IN_DESCRIPTION,
  admit: settleKey,
  give: async (app, ctx) => ({ ...giveCaller(app, ctx), ...(await requireSignedIn(app, callerOf(ctx))) }),
};

/** The same for what a user may do who has to enrol a second factor first. */
export const ENROLLING: Access<ByUser> = {
  ...ENROLLING_DESCRIPTION,
  admit: settleKey,
  give: async (app, ctx) => ({
    ...giveCaller(app, ctx),
    ...(await requireSignedIn(app, callerOf(ctx), { isEnrolling: true })),
  }),
};
