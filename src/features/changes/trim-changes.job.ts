import type { App } from '../../app.js';
import { isClockSteady } from '../../platform/database/clock-drift.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import type { Collection } from '../collections/collection.js';
import { collectionStore } from '../collections/collection-store.js';
import { defaultUsersCollection, USERS } from '../collections/users-collection.js';
import { projectStore } from '../projects/project-store.js';
import type { Project } from '../projects/project.js';
import { keepsChanges } from './change-log.js';
import { openChangeLog } from './open-change-log.js';
import { listLogged, removeLog } from './outbox-log.js';

/**
 * Removes changes that are older than they are to be kept, and the values of documents that were removed for good;
 * also the logs of collections that are gone, or whose changes are not kept any more.
 */
export const trimChangesJob: JobDefinition<App> = {
  name: 'changes.trim',
  retry: { delaysMs: [60_000] },
  async run(app, _payload, { signal, stopping }) {
    if (!(await isClockSteady(app))) return;
    const now = app.clock.now();
    const kept = new Set<string>();
    for await (const collection of listKept(app)) {
      if (signal.aborted || stopping.aborted) return;
      kept.add(collection._id.toHexString());
      const keepMs = collection.changes?.keepMs ?? app.config.changesKeepMs;
      await openChangeLog(app, collection).trim(new Date(now - keepMs));
    }
    if (app.db.changeLogs) return;
    for (const id of await listLogged(app)) if (!kept.has(id.toHexString())) await removeLog(app, id);
  },
};

async function* listKept(app: App): AsyncGenerator<Collection> {
  const edited = new Set<string>();
  for await (const found of collectionStore(app).find({ state: 'active' })) {
    const collection = found as Collection;
    if (collection.name === USERS) edited.add(collection.projectId.toHexString());
    if (keepsChanges(app, collection)) yield collection;
  }
  for await (const found of projectStore(app).find({})) {
    const { _id } = found as Project;
    const users = defaultUsersCollection(_id);
    if (!edited.has(_id.toHexString()) && keepsChanges(app, users)) yield users;
  }
}
