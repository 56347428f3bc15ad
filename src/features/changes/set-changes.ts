import { isDeepStrictEqual } from 'node:util';
import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict } from '../../errors.js';
import type { Collection, ChangesSetting } from '../collections/collection.js';
import { requireStoredCollection, saveCollection } from '../collections/collection-store.js';
import { isNamed, keepsChanges } from './change-log.js';
import { openChangeLog } from './open-change-log.js';
import type { ChangeOptions } from '../collections/change-collection.js';
import { applySchema, orderChanges } from '../collections/schema/apply-schema.js';
import { readDeclaredChanges } from '../collections/schema/collection-declaration.js';
import { namingCollection, type SchemaChange } from '../collections/schema/plan-schema.js';
import type { Project } from '../projects/project.js';

/**
 * Switches the following of a collection's changes on or off, or changes for how long they are kept. Off removes what
 * was kept: followers start over when it is on again. On begins the log. 409 RULES_NEED_LOG where sets of rules are of
 * it.
 */
export async function setChanges(
  app: App,
  projectId: ObjectId,
  name: string,
  change: ChangesSetting,
): Promise<Collection> {
  for (;;) {
    const current = await requireStoredCollection(app, projectId, name);
    if (change.on === false && isNamed(current)) throw neededLog(name);
    const changes = { ...current.changes, ...change };
    const isSame = isDeepStrictEqual(changes, current.changes ?? {});
    const saved = isSame ? current : await saveCollection(app, current, { changes });
    if (!saved) continue;
    if (!keepsChanges(app, saved)) await openChangeLog(app, saved).end();
    // Else the first who follows begins it, or on a MongoDB the first change.
    else if (change.on === true && app.db.changeLogs) await openChangeLog(app, saved).begin();
    return saved;
  }
}

function neededLog(name: string): Error {
  const message = `Rules of other collections name sets of "${name}", whose log says when they change: change those rules first`;
  return conflict('RULES_NEED_LOG', message);
}

/**
 * applySchema, in orderChanges's order, with what the declarations say about the keeping of changes: that is a log as
 * well as a setting. Stops between two steps when it is told to.
 */
export async function applyDeclared(
  app: App,
  project: Project,
  changes: readonly SchemaChange[],
  { stop, ...options }: ChangeOptions & { stop?: AbortSignal } = {},
): Promise<void> {
  for (const change of orderChanges(changes)) {
    stop?.throwIfAborted();
    await namingCollection(change.collection, async () => {
      await applySchema(app, project, [change], options);
      if (change.action !== 'change' || !change.declared.changes) return;
      await setChanges(app, project._id, change.collection, readDeclaredChanges(change.declared.changes));
    });
  }
}
