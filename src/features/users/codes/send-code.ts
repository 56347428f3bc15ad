import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { SystemMail } from '../../mail/sending/send-mail.js';
import type { Project } from '../../projects/project.js';
import { projectStore } from '../../projects/project-store.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import {
  CODE_LIFETIME_MS,
  findPendingEmail,
  forgetPendingEmail,
  findCodeUser,
  openCode,
  type PendingEmail,
  type CodePurpose,
} from './one-time-code.js';
import type { User } from '../user.js';
import { deliverToUser } from '../user-hooks.js';
import { findUser, findUserByEmail } from '../user-store.js';
import { overLimit } from '../../../errors.js';
import type { Counted } from '../counters.js';
import { countMailOf, countMailTo, uncountMails, type Tie, type Asker } from './mail-allowance.js';

/**
 * Mails an open code, if it has a recipient. A crash between mail and note can mail the same code twice.
 */
export const mailCodeJob: JobDefinition<App, { codeId: string }> = {
  name: 'users.mailCode',
  retry: { delaysMs: [1000, 10_000, 60_000] },
  async run(app, { codeId }) {
    const pending = await findPendingEmail(app, codeId);
    if (!pending) return;
    const project = await projectStore(app).findOne({ _id: pending.projectId, state: 'active' });
    const reader = project && (await findReader(app, project, pending));
    if (project && reader) {
      // Before the code, so that the account is always notified of a change that is confirmed.
      if (pending.purpose === 'email-change' && reader.emailVerified && reader.email !== undefined) {
        const variables = { projectName: project.name };
        const notice = { template: 'email-change-notice', to: reader.email, variables } as const;
        await deliverToUser(app, project, notice, { user: reader, once: `${codeId} ${pending.code}` });
      }
      const mail: SystemMail = {
        template: pending.purpose === 'login' ? 'login-code' : pending.purpose,
        to: pending.email,
        variables: {
          code: pending.code,
          link: linkOf(pending),
          projectName: project.name,
          minutes: CODE_LIFETIME_MS / 60_000,
        },
      };
      await deliverToUser(app, project, mail, { user: reader, once: `${codeId} ${pending.code}` });
    }
    await forgetPendingEmail(app, codeId);
  },
};

/** The page that posts the code, with both behind `#`, where no server sees them; empty without a page. */
function linkOf({ redirect, email, code }: PendingEmail): string {
  return redirect === undefined ? '' : `${redirect}#${new URLSearchParams({ email, otp: code }).toString()}`;
}

type Reader = Pick<User, 'email' | 'emailVerified'>;

/** The recipient of a pending email: an account, or an address that may sign up; null if it is obsolete. */
async function findReader(app: App, project: Project, pending: PendingEmail): Promise<Reader | null> {
  const { purpose, email, userId } = pending;
  if (purpose === 'email-change') {
    const user = userId ? await findUser(app, project._id, userId) : null;
    return user?.[HIDDEN_FIELD].pendingEmail?.address === email ? user : null;
  }
  const user = await findUserByEmail(app, project._id, email);
  if (purpose === 'login') {
    if (!user) return signInOf(project).codeLogin === 'signup' ? { email, emailVerified: false } : null;
    return user[HIDDEN_FIELD].disabledAt ? null : user;
  }
  return purpose === 'verification' && user?.emailVerified ? null : user;
}

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
