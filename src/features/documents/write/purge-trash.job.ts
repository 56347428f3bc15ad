import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import { purgeTrash } from './purge-trash.js';

export const purgeTrashJob: JobDefinition<App> = {
  name: 'documents.purgeTrash',
  retry: { delaysMs: [60_000, 300_000] },
  async run(app, _payload, { signal, stopping }) {
    if (!(await isClockSteady(app))) return;
    await purgeTrash(app, AbortSignal.any([signal, stopping]));
  },
};
