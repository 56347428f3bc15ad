import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import type { PasswordWork } from '../../../platform/secrets/password.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { lockUser, endSessions, sessionsEnd, type KnownAccount } from '../sessions/end-sessions.js';
import { nameOf, type User } from '../user.js';
import type { Project } from '../../projects/project.js';
import { requireNewPassword } from '../credentials.js';
import { userGone, accountChanged } from '../user-store.js';
import { changeUser } from './change-user.js';

/**
 * Does `work` in the same turn in which the current password of a signed-in user was found right. 401
 * INVALID_CREDENTIALS for a wrong one, which counts towards the lock like a failed sign-in; 423 while locked, 503 when
 * too many passwords wait.
 */
export async function withCurrentPassword<T>(
  app: App,
  projectId: ObjectId,
  user: User,
  given: { currentPassword: string; ip: string },
  work: (bcrypt: PasswordWork) => Promise<T>,
): Promise<T> {
  const lock = lockUser(app, projectId, nameOf(user), given.ip);
  await lock.rejectLocked();
  return app.passwords.inTurn(projectId.toHexString(), async (bcrypt) => {
    await lock.rejectLocked();
    if (await bcrypt.matches(given.currentPassword, user[HIDDEN_FIELD].passwordHash)) {
      await lock.admit();
      return work(bcrypt);
    }
    await lock.countFailure();
    throw unauthenticated('INVALID_CREDENTIALS', 'The current password is not right');
  });
}

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
async function storePassword(app: App, project: Project, user: KnownAccount, change: PasswordChange): Promise<boolean> {
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

interface PasswordChangeInput {
  currentPassword: string;
  newPassword: string;
}

/**
 * Changes the signed-in user's password and ends all its other sessions. 401 INVALID_CREDENTIALS for a wrong current
 * one, which counts towards the lock like a failed sign-in.
 */
export async function changePassword(
  app: App,
  project: Project,
  user: User,
  input: PasswordChangeInput,
  from: { ip: string; session: string | null },
): Promise<void> {
  const given = { currentPassword: input.currentPassword, ip: from.ip };
  const passwordHash = await withCurrentPassword(app, project._id, user, given, (bcrypt) =>
    bcrypt.hash(input.newPassword),
  );
  const over = user[HIDDEN_FIELD].passwordHash;
  if (!(await storePassword(app, project, user, { passwordHash, over, keepSession: from.session }))) {
    throw accountChanged();
  }
}
