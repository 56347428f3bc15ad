import type { App } from '../../app.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { sendSystemMail } from '../mail/send-system-mail.js';
import type { Project } from '../projects/project.js';
import { projectStore } from '../projects/project-store.js';
import { CODE_LIFETIME_MS, findLetter, forgetLetter, type CodePurpose } from './one-time-code.js';
import type { User } from './user.js';
import { findUserByEmail } from './user-store.js';

/** Mails an open code, if there is somebody to mail it to. A crash between mail and note can mail the same code twice. */
export const mailCodeJob: JobDefinition<App, { codeId: string }> = {
  name: 'users.mailCode',
  retry: { delaysMs: [1000, 10_000, 60_000] },
  async run(app, { codeId }) {
    const letter = await findLetter(app, codeId);
    if (!letter) return;
    const project = (await projectStore(app).findOne({ _id: letter.projectId, state: 'active' })) as Project | null;
    const user = project && (await findUserByEmail(app, project._id, letter.email));
    if (project && user && isWanted(user, letter.purpose)) {
      await sendSystemMail(app, project, {
        template: letter.purpose,
        to: user.email,
        variables: { code: letter.code, projectName: project.name, minutes: CODE_LIFETIME_MS / 60_000 },
      });
    }
    await forgetLetter(app, codeId);
  },
};

function isWanted(user: User, purpose: CodePurpose): boolean {
  return purpose === 'password-reset' || !user.emailVerified;
}
