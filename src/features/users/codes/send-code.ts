import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { overLimit } from '../../../errors.js';
import type { Counted } from '../counters.js';
import { countMailOf, countMailTo, uncountMails, type Tie } from './mail-allowance.js';
import { mailCodeJob } from './mail-code.job.js';
import { findCodeUser, openCode, type CodePurpose } from './one-time-code.js';
import type { Asker } from './tie-of-caller.js';
import type { User } from '../user.js';
import { findUser } from '../user-store.js';

/** What a code is asked for with. */
export interface CodeRequest {
  asker: Asker;
  redirect?: string;
}

/** For a code that the project or a sign-up causes: its address is not verified yet. */
export const BY_STRANGER: Asker = { network: '', findTie: () => Promise.resolve('stranger') };

/**
 * Has a new code mailed, unless one went out in the last minute or the address has had its mails; older ones end.
 * Answers the milliseconds until the next one may be asked for when one went out a moment ago, else 0. Only the worker
 * looks up whether the address has an account, so that neither answer nor time shows it.
 */
export async function sendCode(
  app: App,
  project: Project,
  purpose: CodePurpose,
  email: string,
  { asker, redirect }: CodeRequest,
): Promise<number> {
  const mayMail = async (): Promise<Counted[] | null> => {
    const counted = await countMailTo(app, project._id, email, await asker.findTie());
    return counted && [counted];
  };
  const opened = await openCode(app, project._id, purpose, email, mayMail, { network: asker.network, redirect });
  if (opened && 'waitMs' in opened) return opened.waitMs;
  if (opened) await app.jobs.enqueue(mailCodeJob, { codeId: opened.id }, { priority: 0 });
  return 0;
}

/**
 * sendCode for a request: 429 CODE_SENT_RECENTLY within a minute of the last one, whether or not there is an account.
 */
export async function sendAskedCode(
  app: App,
  project: Project,
  purpose: CodePurpose,
  email: string,
  request: CodeRequest,
): Promise<void> {
  rejectTooSoon(await sendCode(app, project, purpose, email, request));
}

function rejectTooSoon(waitMs: number): void {
  if (waitMs <= 0) return;
  throw overLimit('CODE_SENT_RECENTLY', 'A code was sent less than a minute ago. Use it, or try again later', {
    retryAfterSeconds: Math.ceil(waitMs / 1000),
  });
}

/**
 * Has a code mailed to the address that an account is to have, and a notice to its present one if that is confirmed;
 * both or none. False within a minute of the account's last, or after too many of it today; what the two addresses have
 * had from others the answer does not tell. `tie` is that of who asks to the present address.
 */
export async function sendChangeCode(
  app: App,
  project: Project,
  user: Pick<User, '_id' | 'email' | 'emailVerified'>,
  address: string,
  { network, tie = 'owner' }: { network: string; tie?: Tie },
): Promise<boolean> {
  const { _id: projectId } = project;
  let isAllowed = false;
  const mayMail = async (): Promise<Counted[] | null> => {
    const counted: Counted[] = [];
    const { email, emailVerified } = user;
    const counts = [
      () => countMailOf(app, projectId, user._id),
      ...(email !== undefined && emailVerified ? [() => countMailTo(app, projectId, email, tie)] : []),
      () => countMailTo(app, projectId, address),
    ];
    for (const count of counts) {
      const one = await count();
      if (!one) {
        await uncountMails(app, counted);
        return null;
      }
      isAllowed = true;
      counted.push(one);
    }
    return counted;
  };
  const opened = await openCode(app, projectId, 'email-change', address, mayMail, { network, userId: user._id });
  if (opened && 'id' in opened) await app.jobs.enqueue(mailCodeJob, { codeId: opened.id });
  return isAllowed;
}

/**
 * Has the code mailed again that confirms an address: the account's own, and one that an account is to have. Answers
 * alike for every address; 429 as sendAskedCode.
 */
export async function resendCodes(app: App, project: Project, email: string, asker: Asker): Promise<void> {
  const waitMs = await sendCode(app, project, 'verification', email, { asker });
  const userId = await findCodeUser(app, project, email);
  const user = userId && (await findUser(app, project._id, userId));
  const isSent =
    user && (await sendChangeCode(app, project, user, email, { network: asker.network, tie: await asker.findTie() }));
  if (!isSent) rejectTooSoon(waitMs);
}
