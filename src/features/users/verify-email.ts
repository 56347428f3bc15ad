import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { changeUser } from './change-user.js';
import { checkCode, codeInvalid } from './one-time-code.js';

/** Marks the address as its owner's. 400 OTP_INVALID; a code works once. */
export async function verifyEmail(app: App, project: Project, input: { email: string; otp: string }): Promise<void> {
  const code = await checkCode(app, project, 'verification', input.email, input.otp);
  // Marked before the code is spent: a crash in between leaves a code that can only mark it again.
  const user = await changeUser(app, project, { email: input.email }, { emailVerified: true });
  if (!(await code.spend()) || !user) throw codeInvalid();
}
