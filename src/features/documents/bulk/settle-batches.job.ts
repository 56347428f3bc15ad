import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { settleBatches } from './settle-batches.js';

export const settleBatchesJob: JobDefinition<App> = {
  name: 'documents.settleBatches',
  retry: { delaysMs: [10_000] },
  async run(app) {
    await settleBatches(app);
  },
};
