import type { App } from '../../../app.js';
import type { ObjectStore } from '../../../platform/object-store/object-store.js';
import { objectOf, openPlace, fileStore, type FileRecord } from '../file.js';
import type { ObjectId } from 'bson';
import type { Project } from '../../projects/project.js';
import { projectStore } from '../../projects/project-store.js';
import { refundFiles, usageLine } from '../usage-store.js';
import { FILES } from '../../documents/store/attached-files.js';
import { DAY_MS } from '../../../platform/time/clock.js';

/**
 * Removes the objects of an upload that do not hold its bytes, or all of them once it is deleted. False when the store
 * refuses: nothing is lost, the sweep tries again.
 */
export async function removeObjects(app: App, store: ObjectStore, file: FileRecord): Promise<boolean> {
  const kept = file.state === 'deleted' ? null : objectOf(file);
  const known = new Set([...(file.objects ?? []), objectOf(file)]);
  try {
    for (const object of known) if (object !== kept) await store.remove(object);
    return true;
  } catch (error) {
    app.log.warn(
      { err: error, path: file.path },
      'an object that no file needs could not be removed from its storage yet',
    );
    return false;
  }
}

const AT_ONCE = 8;
const FIRST_RETRY_MS = 60_000;
const MAX_RETRY_MS = 6 * 60 * 60 * 1000;
/** A settled record stays this long, so that what comes late still finds it. */
const KEPT_MS = DAY_MS;

/**
 * Removes the bytes of deleted files of one project and gives their charges back, each exactly once. The sweep tries
 * again where a store refuses, ever more rarely.
 */
export async function reapFiles(app: App, projectId: ObjectId, files: readonly FileRecord[]): Promise<void> {
  const project = await findOwner(app, projectId, files);
  const removed: FileRecord[] = [];
  const queue = [...files];
  const work = async (): Promise<void> => {
    for (let file = queue.pop(); file; file = queue.pop()) {
      if (await removeBytes(app, project, file)) removed.push(file);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (removed.length === 0) return;
  const dueAt = new Date(app.clock.now() + KEPT_MS);
  await app.db.transaction((tx) => {
    const open = removed
      .map(({ _id }) => tx.get<FileRecord>(FILES, _id))
      .filter((file) => file?.state === 'deleted' && !file.settled) as FileRecord[];
    refundFiles(tx, open);
    for (const file of open) tx.put(FILES, { ...file, settled: true, dueAt });
  }, usageLine({ projectId }));
}

async function removeBytes(app: App, project: Project | null, file: FileRecord): Promise<boolean> {
  // Null: the bucket is one that the project has left, with what is in it.
  const store = await openPlace(app, project, file).catch((error: unknown) => noPlace(app, file, error));
  if (!store || (store !== 'away' && (await removeObjects(app, store, { ...file, state: 'deleted' })))) return true;
  await postpone(app, file);
  return false;
}

function noPlace(app: App, { path }: FileRecord, error: unknown): 'away' {
  app.log.warn({ err: error, path }, 'the storage of a file cannot be opened yet');
  return 'away';
}

async function postpone(app: App, { _id, state, failures = 0 }: FileRecord): Promise<void> {
  const waitMs = Math.min(FIRST_RETRY_MS * 2 ** failures, MAX_RETRY_MS);
  await fileStore(app).updateOne(
    { _id, state },
    { $set: { dueAt: new Date(app.clock.now() + waitMs) }, $inc: { failures: 1 } },
  );
}

/**
 * Removes what uploads of confirmed files left beside the object that holds the bytes, once nothing more can arrive
 * there.
 */
export async function tidyFiles(app: App, projectId: ObjectId, files: readonly FileRecord[]): Promise<void> {
  const project = await findOwner(app, projectId, files);
  for (const file of files) {
    const store = await openPlace(app, project, file).catch((error: unknown) => noPlace(app, file, error));
    if (store === 'away' || (store && !(await removeObjects(app, store, file)))) {
      await postpone(app, file);
    } else {
      await fileStore(app).updateOne(
        { _id: file._id, state: 'confirmed' },
        { $set: { objects: [objectOf(file)] }, $unset: { dueAt: '', failures: '' } },
      );
    }
  }
}

/** The project whose bucket holds some of the files; null when none of them is in one, and when the project is gone. */
async function findOwner(app: App, projectId: ObjectId, files: readonly FileRecord[]): Promise<Project | null> {
  if (!files.some((file) => file.place === 'external')) return null;
  return await projectStore(app).findOne({ _id: projectId });
}
