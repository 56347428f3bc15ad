import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import type { PasswordWork } from '../../../platform/secrets/password.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { lockUser } from '../sessions/end-sessions.js';
import { nameOf, type User } from '../user.js';

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
