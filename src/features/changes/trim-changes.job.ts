import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { isClockSteady } from '../../platform/database/clock-drift.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import type { Collection } from '../collections/collection.js';
import { collectionStore } from '../collections/collection-store.js';
import { defaultUsersCollection, USERS } from '../collections/users-collection.js';
import { projectStore } from '../projects/project-store.js';
import { keepsChanges } from './change-log.js';
import { trimLogs } from './log-bound.js';
import { listLogged, removeLog } from './stored-log.js';

/**
 * Removes changes that are older than they are to be kept or more than a log may have, and the values of documents that
 * were removed permanently; also the logs of collections that are gone, or whose changes are not kept any more.
 */
export const trimChangesJob: JobDefinition<App> = {
  name: 'changes.trim',
  retry: { delaysMs: [60_000] },
  async run(app, _payload, { signal, stopping }) {
    if (!(await isClockSteady(app))) return;
    const kept = new Set<string>();
    for (const collections of (await findByProject(app)).values()) {
      if (signal.aborted || stopping.aborted) return;
      for (const { _id } of collections) kept.add(_id.toHexString());
      await trimLogs(app, collections[0]!.projectId, collections);
    }
    if (app.db.changeLogs) return;
    for (const id of await listLogged(app)) if (!kept.has(id.toHexString())) await removeLog(app, id);
  },
};

/** The collections whose changes are kept, by project. */
async function findByProject(app: App): Promise<Map<string, Collection[]>> {
  const found = new Map<string, Collection[]>();
  const add = (collection: Collection): void => {
    const key = collection.projectId.toHexString();
    if (keepsChanges(app, collection)) found.set(key, [...(found.get(key) ?? []), collection]);
  };
  const edited = new Set<string>();
  for await (const collection of collectionStore(app).find({ state: 'active' })) {
    if (collection.name === USERS) edited.add(collection.projectId.toHexString());
    add(collection);
  }
  for await (const project of projectStore(app).find({}).project<{ _id: ObjectId }>({ _id: 1 })) {
    if (!edited.has(project._id.toHexString())) add(defaultUsersCollection(project._id));
  }
  return found;
}
