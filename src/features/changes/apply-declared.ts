import type { App } from '../../app.js';
import type { ChangeOptions } from '../collections/change-collection.js';
import { applySchema } from '../collections/schema/apply-schema.js';
import { orderChanges } from '../collections/schema/apply-schema.js';
import { readDeclaredChanges } from '../collections/schema/collection-declaration.js';
import { namingCollection, type SchemaChange } from '../collections/schema/plan-schema.js';
import type { Project } from '../projects/project.js';
import { setChanges } from './set-changes.js';

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
