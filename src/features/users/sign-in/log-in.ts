import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import type { PasswordWork } from '../../../platform/secrets/password.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { lockUser } from '../sessions/end-sessions.js';
import type { Client } from '../sessions/open-session.js';
import { BY_PASSWORD } from '../sessions/session.js';
import { completeSignIn, accountDisabled, type SignedIn } from './complete-sign-in.js';
import type { User } from '../user.js';
import { findUserByEmail, noteInAccount } from '../user-store.js';

/**
 * Signs in by e-mail and password. 401 INVALID_CREDENTIALS, at the same cost for an unknown address; 423 after five
 * failures in a row; 503 when too many sign-ins wait; 403 ACCOUNT_DISABLED, only with the right password.
 */
export async function logIn(
  app: App,
  project: Project,
  input: { email: string; password: string },
  client: Client,
): Promise<SignedIn> {
  const lock = lockUser(app, project._id, input.email, client.ip);
  await lock.rejectLocked();
  const checkPassword = async (bcrypt: PasswordWork): Promise<User> => {
    // Looked at again when the turn has come: of many guesses at once few are compared, and of these five at most are
    // told.
    await lock.rejectLocked();
    const found = await findUserByEmail(app, project._id, input.email);
    if (await bcrypt.matches(input.password, found?.[HIDDEN_FIELD].passwordHash ?? null)) {
      await lock.admit();
      await renewHash(app, project, found!, input.password, bcrypt);
      return found!;
    }
    await lock.countFailure();
    throw unauthenticated('INVALID_CREDENTIALS', 'Invalid e-mail or password');
  };
  const user = await app.passwords.inTurn(project._id.toHexString(), checkPassword, client.gone);
  if (user[HIDDEN_FIELD].disabledAt) throw accountDisabled();
  return { user, tokens: await completeSignIn(app, project, user, client, BY_PASSWORD) };
}

/** A changed cost setting reaches an account at its next sign-in. */
async function renewHash(
  app: App,
  project: Project,
  user: User,
  password: string,
  bcrypt: PasswordWork,
): Promise<void> {
  const old = user[HIDDEN_FIELD].passwordHash!;
  if (!bcrypt.isOutdated(old)) return;
  const hash = `${HIDDEN_FIELD}.passwordHash` as const;
  await noteInAccount(app, project._id, { _id: user._id, [hash]: old }, { [hash]: await bcrypt.hash(password) });
}
