import type { App } from '../../app.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { TOKEN_CUTOFFS } from '../access/token-cutoff.js';
import { LOGIN_FAILURES } from './login-lock.js';
import { ONE_TIME_CODES } from './one-time-code.js';
import { SESSIONS } from './session.js';
import { SOCIAL_ATTEMPTS } from './social-login.js';

const WITH_AN_END = [SESSIONS, TOKEN_CUTOFFS, ONE_TIME_CODES, LOGIN_FAILURES, SOCIAL_ATTEMPTS];

/** Removes what no longer counts; everything that reads these records looks at `expiresAt` itself. */
export const removeExpiredAccessJob: JobDefinition<App> = {
  name: 'users.removeExpired',
  retry: { delaysMs: [60_000, 300_000] },
  async run(app, _payload, { stopping }) {
    for (const name of WITH_AN_END) {
      if (stopping.aborted) return;
      await app.db.collection(name).deleteMany({ expiresAt: { $lte: new Date(app.clock.now()) } });
    }
  },
};
