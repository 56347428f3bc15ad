import type { App } from '../../app.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { forgetAnswers } from './answer-once.js';

export const forgetAnswersJob: JobDefinition<App> = {
  name: 'documents.forgetAnswers',
  retry: { delaysMs: [60_000] },
  async run(app) {
    await forgetAnswers(app);
  },
};
