import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import type { Collection } from './collection.js';
import { LATE_WRITER_PASSES_MS, nextPass } from './drop-collection.js';
import { fillDefaults } from './fields/fill-defaults.js';
import { foldDocuments } from './indexes/fold-documents.js';

interface FoldPayload {
  collectionId: string;
  /** Milliseconds since 1970. */
  begunAt: number;
}

/**
 * Goes over the folded values and the defaults of a collection once more after its fields have changed: a request that
 * began before may have written as the fields were then.
 */
export const foldDocumentsJob: JobDefinition<App, FoldPayload> = {
  name: 'collections.foldDocuments',
  retry: { delaysMs: [5_000, 60_000, 600_000] },
  async run(app, { collectionId, begunAt }) {
    const collection = { _id: new ObjectId(collectionId) };
    await foldDocuments(app, collection);
    await fillDefaults(app, collection);
    return nextPass(app, begunAt);
  },
};

/** Enqueues the passes after a change of which fields are `@nocase` or have a default. */
export async function enqueueFolding(app: App, { _id }: Pick<Collection, '_id'>): Promise<void> {
  const begunAt = app.clock.now();
  const payload = { collectionId: _id.toHexString(), begunAt };
  await app.jobs.enqueue(foldDocumentsJob, payload, { runAt: new Date(begunAt + LATE_WRITER_PASSES_MS[0]!) });
}
