import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { cutOffTokens, hasCutoff } from '../../access/token-cutoff.js';
import { sessionStore } from '../sessions/session.js';
import { findUser } from '../user-store.js';
import { identityStore } from './linked-identity.js';
import { passkeyStore } from './passkey.js';

const FINISH_AFTER_MS = 30_000;

/** Ends the tokens, sessions and identities of an account that is gone. Harmless to repeat. */
export async function finishUserDeletion(app: App, projectId: ObjectId, userId: ObjectId): Promise<void> {
  await cutOffTokens(app, projectId, userId.toHexString(), {
    // Ahead, as a token may have been signed by a clock that is.
    before: new Date(app.clock.now() + CLOCKS_DIFFER_MS),
  });
  await sessionStore(app).deleteMany({ projectId, userId });
  await identityStore(app).deleteMany({ projectId, userId });
  await passkeyStore(app).deleteMany({ projectId, userId });
}

/**
 * To be called before an account is removed: should the process die right after, a worker does what finishUserDeletion
 * does.
 */
export async function finishDeletionLater(app: App, projectId: ObjectId, userId: ObjectId): Promise<void> {
  const now = app.clock.now();
  const payload = { projectId: projectId.toHexString(), userId: userId.toHexString(), begunMs: now };
  await app.jobs.enqueue(finishUserDeletionJob, payload, { runAt: new Date(now + FINISH_AFTER_MS) });
}

/** Finishes a deletion whose process died between its writes; otherwise finds nothing to do. */
export const finishUserDeletionJob: JobDefinition<App, { projectId: string; userId: string; begunMs: number }> = {
  name: 'users.finishDeletion',
  retry: { delaysMs: [1000, 10_000, 60_000] },
  async run(app, payload) {
    const [projectId, userId] = [new ObjectId(payload.projectId), new ObjectId(payload.userId)];
    if (await findUser(app, projectId, userId)) return;
    const left =
      (await sessionStore(app).findOne({ projectId, userId })) ??
      (await identityStore(app).findOne({ projectId, userId })) ??
      (await passkeyStore(app).findOne({ projectId, userId }));
    if (!left && (await hasCutoff(app, projectId, payload.userId, new Date(payload.begunMs)))) return;
    await finishUserDeletion(app, projectId, userId);
  },
};
