import type { App } from '../../../app.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { changeUser } from './change-user.js';
import { endSessions, sessionsEnd, type KnownAccount } from '../sessions/end-sessions.js';

export interface PasswordChange {
  passwordHash: string;
  /** Only while this is the hash of the present password: for a change that rests on having known it. */
  over?: string | null;
  /** The session that goes on: the one in which the change was made. */
  keepSession?: string | null;
}

/**
 * Replaces a user's password and ends the sessions and access tokens that came before it. False when the account is
 * gone or no longer has the password in `over`. The sessions end with the write itself, so a crash after it leaves none
 * of them.
 */
export async function storePassword(
  app: App,
  project: Project,
  user: KnownAccount,
  change: PasswordChange,
): Promise<boolean> {
  const { passwordHash, over, keepSession } = change;
  const changed = await changeUser(
    app,
    project,
    { _id: user._id, ...(over !== undefined && { [`${HIDDEN_FIELD}.passwordHash`]: over }) },
    { [`${HIDDEN_FIELD}.passwordHash`]: passwordHash, ...sessionsEnd(app, user, keepSession) },
  );
  if (!changed) return false;
  await endSessions(app, project, changed, 'password changed');
  return true;
}
