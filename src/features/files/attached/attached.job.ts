import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { REMOVE_ATTACHED, type AttachedTo, attachedPrefix } from '../../documents/store/attached-files.js';
import { ObjectId } from 'bson';
import { groupBy } from '../../../platform/group-by.js';
import { collectionStore } from '../../collections/collection-store.js';
import { documentStore } from '../../documents/store/document-store.js';
import { projectStore } from '../../projects/project-store.js';
import { deletion, isSince, type FileRecord, fileStore, SERVED_FILES } from '../file.js';
import { reapFiles } from '../uploads/reap-files.js';

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

const BATCH = 500;

/**
 * Deletes the files of one document if it is gone for good, whatever has its id since; their number. Harmless to
 * repeat.
 */
export function removeAttached(app: App, document: AttachedTo): Promise<number> {
  const prefix = attachedPrefix(document);
  return sweepRange(app, new ObjectId(document.projectId), prefix, `${prefix.slice(0, -1)}.`);
}

/**
 * Deletes the files of all documents that are gone for good, however they went: what a purged trash, a dropped
 * collection or a process that was killed has left. May run anywhere, any time, twice at once.
 */
export async function sweepAttached(app: App, stop?: AbortSignal): Promise<number> {
  let removed = 0;
  for await (const { _id } of projectStore(app).find({}).project<{ _id: ObjectId }>({ _id: 1 })) {
    if (stop?.aborted) break;
    const hex = _id.toHexString();
    removed += await sweepRange(app, _id, `${hex}/x`, `${hex}/y`, stop);
  }
  return removed;
}

async function sweepRange(
  app: App,
  projectId: ObjectId,
  from: string,
  to: string,
  stop?: AbortSignal,
): Promise<number> {
  let removed = 0;
  let after = from;
  while (!stop?.aborted) {
    const files = await fileStore(app)
      .find({ path: { $gt: after, $lt: to } })
      .sort({ path: 1 })
      .limit(BATCH)
      .toArray();
    if (files.length === 0) break;
    after = files.at(-1)!.path;
    const lost = await findLost(app, projectId, files);
    if (lost.length > 0) removed += await removeFiles(app, projectId, lost);
  }
  return removed;
}

/** Those of the files that are there and whose document is not. */
async function findLost(app: App, projectId: ObjectId, files: readonly FileRecord[]): Promise<FileRecord[]> {
  const confirmed = files.filter(({ state, attachedTo }) => state === 'confirmed' && attachedTo);
  const lost: FileRecord[] = [];
  for (const [collectionId, some] of groupBy(confirmed, ({ attachedTo }) => attachedTo!.collectionId.toHexString())) {
    const collection = await collectionStore(app).findOne({ _id: new ObjectId(collectionId), projectId });
    const ids = [...new Set(some.map(({ attachedTo }) => attachedTo!.id.toHexString()))];
    // One that is in the trash keeps its files.
    const there = collection
      ? await documentStore(app, collection)
          .find({ _id: { $in: ids.map((id) => new ObjectId(id)) } }, app.db.confirmedReads)
          .project<{ _id: ObjectId; createdAt?: Date | null }>({ createdAt: 1 })
          .toArray()
      : [];
    const known = new Map(there.map(({ _id, createdAt }) => [_id.toHexString(), createdAt]));
    for (const file of some) {
      const { id } = file.attachedTo!;
      const isThere = known.has(id.toHexString()) && isSince(file.attachedTo!, known.get(id.toHexString()));
      if (!isThere) lost.push(file);
    }
  }
  return lost;
}

async function removeFiles(app: App, projectId: ObjectId, files: readonly FileRecord[]): Promise<number> {
  const ids = files.map(({ _id }) => _id);
  const { modifiedCount } = await fileStore(app).updateMany(
    { _id: { $in: ids }, state: 'confirmed' },
    { $set: deletion(new Date(app.clock.now())) },
  );
  for (const { path } of files) app.cache.forget(SERVED_FILES, path);
  await reapFiles(app, projectId, files);
  return modifiedCount;
}
