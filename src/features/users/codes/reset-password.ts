import type { App } from '../../../app.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { changeUser } from '../accounts/change-user.js';
import { endSessions, sessionsEnd, lockUser } from '../sessions/end-sessions.js';
import type { Client } from '../sessions/open-session.js';
import { checkCode, codeInvalid } from './one-time-code.js';
import { transferOwnership } from './ownership.js';
import type { Asker } from './mail-allowance.js';
import type { User } from '../user.js';
import { findUserByEmail } from '../user-store.js';

export interface PasswordResetInput {
  email: string;
  otp: string;
  newPassword: string;
}

const MAX_RACES = 3;

/**
 * Sets a new password by a mailed code and ends every session; an address that is proven by it for the first time ends
 * the linked identities, too. 400 OTP_INVALID, the same for an address without an account. A disabled account stays
 * disabled.
 */
export async function resetPassword(
  app: App,
  project: Project,
  input: PasswordResetInput,
  { ip, gone }: Pick<Client, 'ip' | 'gone'>,
  asker: Asker,
): Promise<void> {
  const code = await checkCode(app, project, 'password-reset', input.email, input.otp, asker);
  const tenant = project._id.toHexString();
  const passwordHash = await app.passwords.inTurn(tenant, (bcrypt) => bcrypt.hash(input.newPassword), gone);
  if (!(await code.spend()) || !(await store(app, project, input.email, passwordHash))) throw codeInvalid();
  await lockUser(app, project._id, input.email, ip).clear();
}

/** Null when no account has the address. Tried again when the account changed between look-up and write. */
async function store(app: App, project: Project, email: string, passwordHash: string): Promise<User | null> {
  for (let race = 0; race < MAX_RACES; race++) {
    const user = await findUserByEmail(app, project._id, email);
    if (!user) return null;
    const { _id, emailVerified } = user;
    const asRead = { email, emailVerified };
    const set = { [`${HIDDEN_FIELD}.passwordHash`]: passwordHash };
    if (!emailVerified) {
      const owned = await transferOwnership(app, project, user, asRead, set, null);
      if (owned) return owned;
      continue;
    }
    const changed = await changeUser(app, project, { _id, ...asRead }, { ...set, ...sessionsEnd(app, user) });
    if (!changed) continue;
    await endSessions(app, project, changed, 'password changed');
    return changed;
  }
  return null;
}
