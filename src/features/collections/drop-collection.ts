import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import { type Collection, documentsPrefix, documentsName } from './collection.js';
import { collectionNotFound, collectionStore, forgetCollection } from './collection-store.js';
import { applySets } from './name-sets.js';
import { requireUnreferred } from './references/reference.js';
import { requireUnnamed } from './rules/require-sound-rules.js';
import { USERS } from './users-collection.js';
import type { JobDefinition } from '../../platform/jobs/job.js';

/**
 * Removes a collection and all its documents permanently. Unreachable from the first write on; what a crash leaves, or
 * a late writer makes again, goes within minutes. 404 for an unknown name, 403 for `users`, 409 NAMED_BY_RULE or
 * REFERRED_TO.
 */
export function dropCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  return app.db.useReserve(() => removeCollection(app, projectId, name));
}

async function removeCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  if (name === USERS) {
    throw forbidden('USERS_BLOCKED', 'The users collection belongs to every project and cannot be dropped');
  }
  const found = await collectionStore(app).findOne({ projectId, name });
  if (found?.state === 'active') {
    await requireUnnamed(app, found);
    await requireUnreferred(app, found);
  }
  if (found) await enqueueFinishDrop(app, found);
  const collection =
    found &&
    (await collectionStore(app).findOneAndUpdate(
      { _id: found._id, name },
      { $set: { state: 'dropping', updatedAt: new Date(app.clock.now()) } },
      { returnDocument: 'after' },
    ));
  if (!collection) throw collectionNotFound(name);
  forgetCollection(app, collection);
  if (collection.rules) await applySets(app, collection);
  await removeDropped(app, collection);
  return collection;
}

/**
 * Removes all collections of a project that is being deleted, `users` and stored ones without a record among them.
 * Harmless to repeat.
 */
export async function removeProjectCollections(app: App, projectId: ObjectId): Promise<void> {
  for await (const collection of collectionStore(app).find({ projectId })) {
    forgetCollection(app, collection);
  }
  const prefix = documentsPrefix(projectId);
  for (const name of await app.db.listNames()) {
    if (name.startsWith(prefix)) await app.db.collection(name).drop();
  }
  await collectionStore(app).deleteMany({ projectId });
}

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
async function enqueueFinishDrop(app: App, { _id, projectId }: Pick<Collection, '_id' | 'projectId'>): Promise<void> {
  const begunAt = app.clock.now();
  const payload = { projectId: projectId.toHexString(), collectionId: _id.toHexString(), begunAt };
  await app.jobs.enqueue(finishDropJob, payload, { runAt: new Date(begunAt + LATE_WRITER_PASSES_MS[0]!) });
}

/** Removes the documents of a collection that is being dropped, then its record. Harmless to repeat. */
async function removeDropped(app: App, dropped: Pick<Collection, '_id' | 'projectId'>): Promise<void> {
  await app.db.collection(documentsName(dropped)).drop();
  await collectionStore(app).deleteOne({ _id: dropped._id, state: 'dropping' });
}

/** The pass after this one, for a job's answer. */
export function nextPass(app: Pick<App, 'clock'>, begunAt: number): { again: Date } | undefined {
  const next = LATE_WRITER_PASSES_MS.find((ms) => begunAt + ms > app.clock.now());
  return next === undefined ? undefined : { again: new Date(begunAt + next) };
}
