import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { hashRefreshToken, isGenuine, parseRefreshToken } from './refresh-token.js';
import { endOneSession, sessionStore } from './session.js';

/** What a request to sign out presents: a refresh token, the session of its access token, both or neither. */
export interface Presented {
  refreshToken: string;
  session: string | null;
}

/**
 * Ends the session of a refresh token, the current one or an older, and that of an access token, with their access
 * tokens. Does nothing for anything else, so that signing out always works.
 */
export async function logOut(app: App, project: Project, { refreshToken, session }: Presented): Promise<void> {
  const token = parseRefreshToken(refreshToken);
  const known = !token || isGenuine(app.secrets, token) ? {} : { tokenHash: hashRefreshToken(token) };
  const named = [...(token ? [{ _id: token.session, ...known }] : []), ...(session === null ? [] : [{ _id: session }])];
  for (const one of named) {
    const live = await sessionStore(app).findOne({ ...one, projectId: project._id, revokedAt: null });
    if (live) await endOneSession(app, live, 'signed out');
  }
}
