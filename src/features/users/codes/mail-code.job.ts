import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { SystemMail } from '../../mail/sending/send-system-mail.js';
import type { Project } from '../../projects/project.js';
import { projectStore } from '../../projects/project-store.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import { CODE_LIFETIME_MS, findPendingEmail, forgetPendingEmail, type PendingEmail } from './one-time-code.js';
import type { User } from '../user.js';
import { deliverToUser } from '../user-hooks.js';
import { findUser, findUserByEmail } from '../user-store.js';

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
