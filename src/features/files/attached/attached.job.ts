import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { REMOVE_ATTACHED, type AttachedTo } from '../../documents/store/attached-files.js';
import { removeAttached, sweepAttached } from './sweep-attached.js';

export const removeAttachedJob: JobDefinition<App, AttachedTo> = {
  name: REMOVE_ATTACHED.name,
  retry: { delaysMs: [1_000, 10_000, 60_000] },
  async run(app, document) {
    await removeAttached(app, document);
  },
};

export const sweepAttachedJob: JobDefinition<App> = {
  name: 'files.sweepAttached',
  retry: { delaysMs: [60_000] },
  async run(app, _payload, { signal, stopping }) {
    await sweepAttached(app, AbortSignal.any([signal, stopping]));
  },
};
