import type { App } from '../../../app.js';
import { missing } from '../../../errors.js';
import type { Project } from '../../projects/project.js';
import { endSessions, isSessionOf, sessionsEnd, type KnownAccount } from './end-sessions.js';
import { endOneSession, findLiveSessions, type Session } from './session.js';
import type { User } from '../user.js';
import { noteInAccount, userGone } from '../user-store.js';

/** A user's live sessions, the one used last first. */
export function listSessions(app: App, project: Project, user: Pick<User, '_id'>): Promise<Session[]> {
  return findLiveSessions(app, project._id, user).toArray();
}

const MAX_OWN = 100;

/** The live sessions that a user is shown, the one used last first. */
export async function listMySessions(app: App, project: Project, user: User): Promise<Session[]> {
  const sessions = await findLiveSessions(app, project._id, user).limit(MAX_OWN).toArray();
  return sessions.filter((session) => isSessionOf(session, user));
}

/** A session as operators see it, without anything that could be used in its place. */
export function presentSession(session: Session) {
  return {
    id: session._id,
    createdAt: session.createdAt.toISOString(),
    usedAt: session.usedAt.toISOString(),
    expiresAt: session.expiresAt.toISOString(),
    ip: session.ip,
    userAgent: session.userAgent,
  };
}

/**
 * Ends one session of a user, `all` of them or those `others` than `current`, and their access tokens; answers how many
 * there were. 404 for a session that is not the user's or has ended, and for `others` where none is the current one.
 */
export async function endSession(
  app: App,
  project: Project,
  user: KnownAccount,
  which: string,
  current: string | null = null,
): Promise<number> {
  if (which === 'all' || (which === 'others' && current !== null)) {
    const ended = await noteInAccount(
      app,
      project._id,
      { _id: user._id },
      sessionsEnd(app, user, which === 'others' ? current : null),
    );
    if (!ended) throw userGone();
    return endSessions(app, project, ended, 'revoked');
  }
  const sessions = await listSessions(app, project, user);
  const session = sessions.find(({ _id }) => _id === which);
  if (!session || !(await endOneSession(app, session, 'revoked'))) {
    throw missing('SESSION_NOT_FOUND', 'The user has no such session');
  }
  return 1;
}
