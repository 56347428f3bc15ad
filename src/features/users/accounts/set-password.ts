import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { requireNewPassword } from '../credentials.js';
import { lockUser } from '../sessions/lock-user.js';
import { storePassword } from './store-password.js';
import { nameOf, type User } from '../user.js';
import { userGone } from '../user-store.js';

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
