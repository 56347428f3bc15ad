import type { App } from '../../app.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { isClockSteady } from '../../platform/database/clock-drift.js';
import { TOKEN_CUTOFFS } from '../access/token-cutoff.js';
import { ONE_TIME_TOKENS } from '../quota/one-time-token.js';
import { INVITES } from './invites/invite.js';
import { COUNTERS } from './counters.js';
import { ONE_TIME_CODES } from './codes/one-time-code.js';
import { SESSIONS } from './sessions/session.js';
import type { ObjectId } from 'bson';
import { documentsName } from '../collections/collection.js';
import { COLLECTIONS } from '../collections/collection-store.js';
import { defaultUsersCollection, USERS } from '../collections/users-collection.js';
import { SOCIAL_IDENTITIES, PASSKEYS } from './accounts/sign-in-methods.js';
import { SOCIAL_PROVIDERS } from './social/social-provider.js';

export const WITH_AN_END = [SESSIONS, TOKEN_CUTOFFS, ONE_TIME_CODES, ONE_TIME_TOKENS, COUNTERS, INVITES];

/** The time by which the clock may jump ahead without being doubted. */
export const KEPT_AFTER_END_MS = 26 * 3_600_000;

/** Removes what no longer counts; everything that reads these records looks at `expiresAt` itself. */
export const removeExpiredAccessJob: JobDefinition<App> = {
  name: 'users.removeExpired',
  retry: { delaysMs: [60_000, 300_000] },
  async run(app, _payload, { stopping }) {
    if (!(await isClockSteady(app))) return;
    // Kept a little longer than they count: a clock that was ahead by hours and comes back finds them.
    const before = new Date(app.clock.now() - KEPT_AFTER_END_MS);
    for (const name of WITH_AN_END) {
      if (stopping.aborted) return;
      await app.db.collection(name).deleteMany({ expiresAt: { $lte: before } });
    }
  },
};

const OF_PROJECT = [...WITH_AN_END, SOCIAL_IDENTITIES, PASSKEYS, SOCIAL_PROVIDERS];

/** Removes the users of a project that is being deleted, and all that belongs to them. Harmless to repeat. */
export async function deleteProjectUsers(app: App, projectId: ObjectId): Promise<void> {
  for (const name of OF_PROJECT) await app.db.collection(name).deleteMany({ projectId });
  await app.db.collection(documentsName(defaultUsersCollection(projectId))).drop();
  await app.db.collection(COLLECTIONS).deleteOne({ projectId, name: USERS });
}
