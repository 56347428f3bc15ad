import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { deletion, type FileRecord, fileMissing, fileStore, filesOf, findFile, SERVED_FILES } from './file.js';
import { usageStore } from './usage-store.js';
import { reapFiles } from './uploads/reap-files.js';

/**
 * Deletes a confirmed file: first the record, in one write, then its bytes and its charge. 404 when there is none,
 * also at the second time. `mayDelete` throws where the caller may not.
 */
export async function deleteFile(
  app: App,
  project: Project,
  path: string,
  mayDelete: (file: FileRecord) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const known = await findFile(app, project._id, path);
  if (!known) throw fileMissing();
  await mayDelete(known);
  const file = await fileStore(app).findOneAndUpdate(
    { _id: known._id, state: 'confirmed' },
    { $set: deletion(new Date(app.clock.now())) },
    { returnDocument: 'after' },
  );
  if (!file) throw fileMissing();
  app.cache.forget(SERVED_FILES, path);
  await reapFiles(app, project._id, [file]);
}

const BATCH = 200;
/** A request does not wait longer for bytes to be removed; the sweep goes on with the rest. */
const PATIENCE_MS = 15_000;

/**
 * Deletes all confirmed files of a project and returns their number: all gone at once, their bytes and charges in the
 * next seconds, beyond that by the sweep.
 */
export async function deleteAllFiles(app: App, project: Pick<Project, '_id'>): Promise<number> {
  const deletedAt = new Date(app.clock.now());
  const { modifiedCount } = await fileStore(app).updateMany(
    { ...filesOf(project._id), state: 'confirmed' },
    { $set: deletion(deletedAt) },
  );
  app.cache.forgetAll(SERVED_FILES);
  const started = performance.now();
  while (performance.now() - started < PATIENCE_MS) {
    const batch = await fileStore(app)
      .find({ projectId: project._id, state: 'deleted', settled: false, dueAt: { $lte: deletedAt } })
      .limit(BATCH)
      .toArray();
    if (batch.length === 0) break;
    await reapFiles(app, project._id, batch);
  }
  return modifiedCount;
}

/**
 * Lets go of everything a project keeps, for a project that is being deleted. Objects in its own bucket stay there:
 * they are the owner's.
 */
export async function dropProjectFiles(app: App, project: Pick<Project, '_id'>): Promise<void> {
  await fileStore(app).deleteMany({ ...filesOf(project._id), place: 'external' });
  await fileStore(app).updateMany(
    { ...filesOf(project._id), state: { $ne: 'deleted' } },
    { $set: deletion(new Date(app.clock.now())) },
  );
  await deleteAllFiles(app, project);
  await usageStore(app).deleteMany({ $or: [{ _id: project._id }, { projectId: project._id }] });
}
