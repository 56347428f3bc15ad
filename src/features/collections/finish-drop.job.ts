import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { documentsName, type Collection } from './collection.js';
import { collectionStore } from './collection-store.js';

/**
 * The later passes over a drop, in milliseconds after it began: once other processes have noticed it, and once every
 * request that had begun before is over (decision 6).
 */
export const LATE_WRITER_PASSES_MS: readonly number[] = [5_000, 150_000];

interface FinishDropPayload {
  projectId: string;
  collectionId: string;
  /** Milliseconds since 1970. */
  begunAt: number;
}

/**
 * Finishes the drop of a collection. Another process that remembers the record for another half second, or has a
 * request under way, can still write to the stored documents and so make them again: they are dropped again, and so is
 * what a crash left.
 */
export const finishDropJob: JobDefinition<App, FinishDropPayload> = {
  name: 'collections.finishDrop',
  retry: { delaysMs: [5_000, 60_000, 600_000] },
  async run(app, { projectId, collectionId, begunAt }) {
    const dropped = { _id: new ObjectId(collectionId), projectId: new ObjectId(projectId) };
    const record = await collectionStore(app).findOne({ _id: dropped._id });
    // Still active: the process died, or is yet to come, before the first write of the drop.
    if (record?.state !== 'active') await removeDropped(app, dropped);
    return nextPass(app, begunAt);
  },
};

/** Enqueues the job that finishes a drop, before the drop begins. */
export async function enqueueFinishDrop(
  app: App,
  { _id, projectId }: Pick<Collection, '_id' | 'projectId'>,
): Promise<void> {
  const begunAt = app.clock.now();
  const payload = { projectId: projectId.toHexString(), collectionId: _id.toHexString(), begunAt };
  await app.jobs.enqueue(finishDropJob, payload, { runAt: new Date(begunAt + LATE_WRITER_PASSES_MS[0]!) });
}

/** Removes the documents of a collection that is being dropped, then its record. Harmless to repeat. */
export async function removeDropped(app: App, dropped: Pick<Collection, '_id' | 'projectId'>): Promise<void> {
  await app.db.collection(documentsName(dropped)).drop();
  await collectionStore(app).deleteOne({ _id: dropped._id, state: 'dropping' });
}

/** The pass after this one, for a job's answer. */
export function nextPass(app: Pick<App, 'clock'>, begunAt: number): { again: Date } | undefined {
  const next = LATE_WRITER_PASSES_MS.find((ms) => begunAt + ms > app.clock.now());
  return next === undefined ? undefined : { again: new Date(begunAt + next) };
}
