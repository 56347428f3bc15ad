import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { countMailOf, countMailTo } from './mail-allowance.js';
import { mailCodeJob } from './mail-code.job.js';
import { findCodeUser, openCode, type CodePurpose } from './one-time-code.js';
import type { User } from '../user.js';
import { findUser } from '../user-store.js';

/**
 * Has a new code mailed, unless one went out in the last minute or the address has had its mails; older ones end. Only
 * the worker looks up whether the address has an account, so that neither answer nor time shows it.
 */
export async function sendCode(
  app: App,
  project: Project,
  purpose: CodePurpose,
  email: string,
  redirect?: string,
): Promise<void> {
  const mayMail = (): Promise<boolean> => countMailTo(app, project._id, email);
  const codeId = await openCode(app, project._id, purpose, email, mayMail, { redirect });
  if (codeId) await app.jobs.enqueue(mailCodeJob, { codeId }, { priority: 0 });
}

/**
 * Has a code mailed to the address that an account is to have, and a notice to its present one if that is confirmed;
 * both or none. False within a minute of the account's last, or after too many of it today; what the two addresses have
 * had from others the answer does not tell.
 */
export async function sendChangeCode(
  app: App,
  project: Project,
  user: Pick<User, '_id' | 'email' | 'emailVerified'>,
  address: string,
  { isCallers = true }: { isCallers?: boolean } = {},
): Promise<boolean> {
  const { _id: projectId } = project;
  let isAllowed = false;
  const mayMail = async (): Promise<boolean> => {
    isAllowed = await countMailOf(app, projectId, user._id);
    if (!isAllowed) return false;
    const { email, emailVerified } = user;
    if (email !== undefined && emailVerified && !(await countMailTo(app, projectId, email, { isCallers }))) {
      return false;
    }
    return countMailTo(app, projectId, address);
  };
  const codeId = await openCode(app, projectId, 'email-change', address, mayMail, { userId: user._id });
  if (codeId) await app.jobs.enqueue(mailCodeJob, { codeId });
  return isAllowed;
}

/**
 * Has the code mailed again that confirms an address: the account's own, and one that an account is to have. Answers
 * alike for every address.
 */
export async function resendCodes(app: App, project: Project, email: string): Promise<void> {
  await sendCode(app, project, 'verification', email);
  const userId = await findCodeUser(app, project, email);
  const user = userId && (await findUser(app, project._id, userId));
  if (user) await sendChangeCode(app, project, user, email, { isCallers: false });
}
