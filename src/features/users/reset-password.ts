import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { loginLock } from './login-lock.js';
import { checkCode, codeInvalid } from './one-time-code.js';
import { storePassword } from './store-password.js';
import { findUserByEmail } from './user-store.js';

export interface PasswordResetInput {
  email: string;
  otp: string;
  newPassword: string;
}

/** Sets a new password by a mailed code and ends every session. 400 OTP_INVALID, the same for an address without an account. A disabled account stays disabled. */
export async function resetPassword(app: App, project: Project, input: PasswordResetInput, ip: string): Promise<void> {
  const code = await checkCode(app, project, 'password-reset', input.email, input.otp);
  const passwordHash = await app.passwords.inTurn(project._id.toHexString(), (bcrypt) =>
    bcrypt.hash(input.newPassword),
  );
  if (!(await code.spend())) throw codeInvalid();
  const user = await findUserByEmail(app, project._id, input.email);
  if (!user || !(await storePassword(app, project, user, { passwordHash, provesEmail: true }))) throw codeInvalid();
  const lock = loginLock(app, project._id, input.email, ip);
  await lock.clear();
}
