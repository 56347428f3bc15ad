import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { levelOf } from '../../access/caller.js';
import type { Project } from '../../projects/project.js';
import { findLevel } from '../factors/factors.js';
import { issueAccessToken } from '../sessions/open-session.js';
import { authenticationOf, sessionStore } from '../sessions/session.js';
import { verifyCredentials, stepUpRequired, type StepUpCredentials, type SessionUser } from './require-step-up.js';

/**
 * Stores a re-authentication in the session and returns an access token with it. 403 STEP_UP_REQUIRED for credentials
 * below the account's highest level; 401 if the session has ended.
 */
export async function stepUp(
  app: App,
  project: Project,
  sessionUser: SessionUser,
  given: StepUpCredentials,
): Promise<string> {
  const { user, session } = sessionUser;
  const method = await verifyCredentials(app, project, sessionUser, given);
  if (!method || levelOf([method]) < (await findLevel(app, project, user))) {
    throw await stepUpRequired(app, project, user);
  }
  const now = app.clock.now();
  const live = { _id: session ?? '', userId: user._id, revokedAt: null };
  const found = await sessionStore(app).findOne(live);
  const proved = found && {
    amr: [...new Set([...authenticationOf(found).amr, method])],
    authAt: new Date(now),
    ...(levelOf([method]) === 2 && { mfaAt: new Date(now) }),
  };
  if (!proved || (await sessionStore(app).updateOne(live, { $set: proved })).matchedCount === 0) {
    throw unauthenticated('TOKEN_INVALID', 'The session has ended: sign in again');
  }
  return issueAccessToken(app, project, user, { ...found, ...proved }, now);
}
