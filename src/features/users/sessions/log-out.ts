import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { hashRefreshToken, isGenuine, parseRefreshToken } from './refresh-token.js';
import { sessionStore } from './session.js';

/**
 * Ends the session of a refresh token, the current one or an older. Does nothing for anything else, so that signing out
 * always works.
 */
export async function logOut(app: App, project: Project, presented: string): Promise<void> {
  const token = parseRefreshToken(presented);
  if (!token) return;
  const known = isGenuine(app.secrets, token) ? {} : { tokenHash: hashRefreshToken(token) };
  await sessionStore(app).updateOne(
    { _id: token.session, projectId: project._id, revokedAt: null, ...known },
    { $set: { revokedAt: new Date(app.clock.now()), revokedFor: 'signed out' } },
  );
}
