import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { SETTLE_REFERENCES, type SettledDocument } from '../store/referring-documents.js';
import { settleReferences } from './settle-references.js';

export const settleReferencesJob: JobDefinition<App, SettledDocument> = {
  name: SETTLE_REFERENCES.name,
  retry: { delaysMs: [1_000, 10_000, 60_000, 600_000] },
  async run(app, { projectId, collectionId, id }, { signal, stopping }) {
    const referred = {
      projectId: new ObjectId(projectId),
      collectionId: new ObjectId(collectionId),
      id: new ObjectId(id),
    };
    const isDone = await settleReferences(app, referred, AbortSignal.any([signal, stopping]));
    return isDone ? undefined : { again: new Date(app.clock.now()) };
  },
};
