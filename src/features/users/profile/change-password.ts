import type { App } from '../../../app.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { withCurrentPassword } from '../accounts/check-password.js';
import { storePassword } from '../accounts/set-password.js';
import type { User } from '../user.js';
import { accountChanged } from '../user-store.js';

export interface PasswordChangeInput {
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
