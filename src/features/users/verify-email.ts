import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { checkCode, codeInvalid } from './one-time-code.js';
import { userStore } from './user-store.js';

/** Marks the address as its owner's. 400 OTP_INVALID; a code works once. */
export async function verifyEmail(app: App, project: Project, input: { email: string; otp: string }): Promise<void> {
  const code = await checkCode(app, project, 'verification', input.email, input.otp);
  // Marked before the code is spent: a crash in between leaves a code that can only mark it again.
  const { matchedCount } = await userStore(app, project._id).updateOne(
    { email: input.email, isDeleted: false },
    { $set: { emailVerified: true, updatedAt: new Date(app.clock.now()) } },
  );
  if (!(await code.spend()) || matchedCount === 0) throw codeInvalid();
}
