import { isClockSteady } from '../database/clock-drift.js';
import type { JobDefinition } from './job.js';
import type { JobDependencies } from './job-queue.js';
import { removeExpiredJobs } from './manage-jobs.js';

export const removeExpiredJobsJob: JobDefinition<JobDependencies> = {
  name: 'jobs.removeExpired',
  retry: { delaysMs: [60_000] },
  async run(deps) {
    if (await isClockSteady(deps)) await removeExpiredJobs(deps);
  },
};
