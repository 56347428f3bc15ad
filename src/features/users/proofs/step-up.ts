import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { levelOf } from '../../access/caller.js';
import type { Project } from '../../projects/project.js';
import { findLevel } from '../factors/factors.js';
import { issueAccessToken } from '../sessions/open-session.js';
import { proofOf, sessionStore } from '../sessions/session.js';
import { checkProof, stepUpRequired, type GivenProof, type ProvingUser } from './require-step-up.js';

/**
 * Notes a new proof in the session, which goes on as it is, and answers an access token that says so. 403
 * STEP_UP_REQUIRED without a proof of the account's highest level; 401 when the session has ended since.
 */
export async function stepUp(app: App, project: Project, proving: ProvingUser, given: GivenProof): Promise<string> {
  const { user, session } = proving;
  const method = await checkProof(app, project, proving, given);
  if (!method || levelOf([method]) < (await findLevel(app, project, user))) {
    throw await stepUpRequired(app, project, user);
  }
  const now = app.clock.now();
  const live = { _id: session ?? '', userId: user._id, revokedAt: null };
  const found = await sessionStore(app).findOne(live);
  const proved = found && {
    amr: [...new Set([...proofOf(found).amr, method])],
    authAt: new Date(now),
    ...(levelOf([method]) === 2 && { mfaAt: new Date(now) }),
  };
  if (!proved || (await sessionStore(app).updateOne(live, { $set: proved })).matchedCount === 0) {
    throw unauthenticated('TOKEN_INVALID', 'The session has ended: sign in again');
  }
  return issueAccessToken(app, project, user, { ...found, ...proved }, now);
}
