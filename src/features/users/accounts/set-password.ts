import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { requireNewPassword } from '../credentials.js';
import { nameOf, type User } from '../user.js';
import { userGone } from '../user-store.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { changeUser } from './change-user.js';
import { lockUser, endSessions, sessionsEnd, type KnownAccount } from '../sessions/end-sessions.js';

/** Gives a user another password and ends every session. 400 for its size, 404 when the user is gone. */
export async function setPassword(app: App, project: Project, user: User, password: string): Promise<void> {
  requireNewPassword(password);
  const passwordHash = await app.passwords.inTurn(project._id.toHexString(), (bcrypt) => bcrypt.hash(password));
  if (!(await storePassword(app, project, user, { passwordHash }))) {
    throw userGone();
  }
  // Its guesses were at the old password.
  await lockUser(app, project._id, nameOf(user), '').clear();
}

interface PasswordChange {
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
