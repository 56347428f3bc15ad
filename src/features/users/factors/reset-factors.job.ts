import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { projectStore } from '../../projects/project-store.js';
import type { Project } from '../../projects/project.js';
import { removeDeadPasskeys } from '../accounts/passkey.js';
import { endSessions, sessionsEnd } from '../sessions/end-sessions.js';
import type { User } from '../user.js';
import { findUser, noteInAccount } from '../user-store.js';
import { factorsEnd, isResetDue } from './factors.js';

/** The account after a reset of its factors that is due: it has none, and its sessions have ended. */
export async function applyReset(app: App, project: Project, user: User): Promise<User> {
  if (!isResetDue(user, app.clock.now())) return user;
  const { mfaResetAt, stamp } = user[HIDDEN_FIELD];
  const reset = await noteInAccount(
    app,
    project._id,
    { _id: user._id, [`${HIDDEN_FIELD}.mfaResetAt`]: mfaResetAt, [`${HIDDEN_FIELD}.stamp`]: stamp ?? null },
    { ...factorsEnd(), ...sessionsEnd(app, user) },
  );
  if (reset) await endSessions(app, project, reset, 'account changed');
  if (reset) await removeDeadPasskeys(app, project, reset);
  return reset ?? (await findUser(app, project._id, user._id)) ?? user;
}

/** Ends the sessions when a reset takes effect; the factors count no more from that moment anyway. */
export const resetFactorsJob: JobDefinition<App, { projectId: string; userId: string }> = {
  name: 'users.resetFactors',
  retry: { delaysMs: [1000, 10_000, 60_000] },
  async run(app, { projectId, userId }) {
    const project = await projectStore(app).findOne({ _id: new ObjectId(projectId) });
    const user = project && (await findUser(app, project._id, new ObjectId(userId)));
    if (project && user) await applyReset(app, project, user);
  },
};
