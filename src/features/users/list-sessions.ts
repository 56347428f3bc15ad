import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { sessionStore, type Session } from './session.js';
import type { User } from './user.js';

/** A user's live sessions, the one used last first. */
export function listSessions(app: App, project: Project, user: Pick<User, '_id'>): Promise<Session[]> {
  return sessionStore(app)
    .find({
      projectId: project._id,
      userId: user._id,
      revokedAt: null,
      expiresAt: { $gt: new Date(app.clock.now()) },
    })
    .sort({ usedAt: -1 })
    .toArray() as Promise<Session[]>;
}

/** What the operator sees of a session: nothing that could be presented in its place. */
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
