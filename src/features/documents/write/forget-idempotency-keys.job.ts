import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import { removeExpiredRecords } from './idempotency.js';

export const forgetAnswersJob: JobDefinition<App> = {
  name: 'documents.removeExpiredRecords',
  retry: { delaysMs: [60_000] },
  async run(app) {
    if (await isClockSteady(app)) await removeExpiredRecords(app);
  },
};
