import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { hasCutoff } from '../../access/token-cutoff.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { projectStore } from '../../projects/project-store.js';
import type { Project } from '../../projects/project.js';
import { endSessions } from '../sessions/end-sessions.js';
import { removeDeadLinks } from '../accounts/linked-identity.js';
import { removeDeadPasskeys } from '../accounts/passkey.js';
import type { User } from '../user.js';
import { findUser } from '../user-store.js';

/** Ends tokens, sessions and identities of earlier owners after a write with ownershipBegins. Idempotent. */
export async function finishTransfer(app: App, project: Project, user: User): Promise<void> {
  await endSessions(app, project, user, 'account changed');
  await removeDeadLinks(app, project, user);
  await removeDeadPasskeys(app, project, user);
}

/** Finishes a transfer if a process died between its writes; otherwise does nothing. */
export const finishTransferJob: JobDefinition<App, { projectId: string; userId: string }> = {
  name: 'users.finishTransfer',
  retry: { delaysMs: [1000, 10_000, 60_000] },
  async run(app, { projectId, userId }) {
    const project = await projectStore(app).findOne({ _id: new ObjectId(projectId) });
    const user = project && (await findUser(app, project._id, new ObjectId(userId)));
    const before = user?.[HIDDEN_FIELD].tokensSince;
    if (!project || !user || !before || (await hasCutoff(app, project._id, userId, before))) return;
    await finishTransfer(app, project, user);
  },
};
