import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { sweepUploads } from './sweep-uploads.js';

export const sweepUploadsJob: JobDefinition<App> = {
  name: 'files.sweepUploads',
  retry: { delaysMs: [10_000, 60_000] },
  async run(app, _payload, { signal, stopping }) {
    await sweepUploads(app, AbortSignal.any([signal, stopping]));
  },
};
