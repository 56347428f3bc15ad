import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { mailCodeJob } from './mail-code.job.js';
import { findCodeUser, openCode, type CodePurpose } from './one-time-code.js';

/**
 * Has a new code mailed, unless one went out in the last minute; older ones end. Only the worker looks up whether the
 * address has an account, so that neither answer nor time shows it.
 */
export async function sendCode(app: App, project: Project, purpose: CodePurpose, email: string): Promise<void> {
  const codeId = await openCode(app, project._id, purpose, email);
  if (codeId) await app.jobs.enqueue(mailCodeJob, { codeId }, { priority: 0 });
}

/**
 * Has a code mailed to the address that an account is to have, and a notice to its present one; false within a minute
 * of the last or after too many today.
 */
export async function sendChangeCode(app: App, project: Project, userId: ObjectId, address: string): Promise<boolean> {
  const codeId = await openCode(app, project._id, 'email-change', address, userId);
  if (codeId) await app.jobs.enqueue(mailCodeJob, { codeId });
  return codeId !== null;
}

/**
 * Has the code mailed again that confirms an address: the account's own, and one that an account is to have. Answers
 * alike for every address.
 */
export async function resendCodes(app: App, project: Project, email: string): Promise<void> {
  await sendCode(app, project, 'verification', email);
  const userId = await findCodeUser(app, project, email);
  if (userId) await sendChangeCode(app, project, userId, email);
}
