import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { AlongsideChange } from '../../documents/write/plan-update.js';
import type { Project } from '../../projects/project.js';
import { withCurrentPassword } from '../accounts/check-password.js';
import { emailTaken } from '../accounts/insert-user.js';
import { isGuest, type User } from '../user.js';
import { findUserByEmail } from '../user-store.js';

/**
 * Refuses an address that a user may not ask for: 409 EMAIL_TAKEN; where the account has a password, 400
 * CURRENT_PASSWORD_REQUIRED without it and 401 INVALID_CREDENTIALS for a wrong one, which counts like a failed sign-in.
 */
export async function authoriseEmailChange(
  app: App,
  project: Project,
  user: User,
  address: string,
  given: { currentPassword: string | null; ip: string },
): Promise<void> {
  const { currentPassword, ip } = given;
  if (user[HIDDEN_FIELD].passwordHash !== null) {
    if (currentPassword === null) {
      throw invalid(
        'CURRENT_PASSWORD_REQUIRED',
        'Another e-mail address needs the current password: send currentPassword',
      );
    }
    await withCurrentPassword(app, project._id, user, { currentPassword, ip }, () => Promise.resolve());
  }
  // A guest is told once the address is proven: anybody may be one.
  if (!isGuest(user) && (await findUserByEmail(app, project._id, address))) throw emailTaken();
}

/** The part of a write that notes the address which the account is to have; it keeps its own until verifyEmail. */
export function notesPendingEmail(app: App, user: User, address: string): AlongsideChange {
  return {
    // Authorised by that password, for an account that had that address.
    filter: { email: user.email ?? null, [`${HIDDEN_FIELD}.passwordHash`]: user[HIDDEN_FIELD].passwordHash },
    set: { [`${HIDDEN_FIELD}.pendingEmail`]: { address, askedAt: new Date(app.clock.now()) } },
  };
}
