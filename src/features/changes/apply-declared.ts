import type { App } from '../../app.js';
import { applySchema } from '../collections/schema/apply-schema.js';
import { readDeclaredChanges } from '../collections/schema/collection-declaration.js';
import type { SchemaChange } from '../collections/schema/plan-schema.js';
import type { Project } from '../projects/project.js';
import { setChanges } from './set-changes.js';

/** applySchema with what the declarations say about the keeping of changes: that is a log as well as a setting. */
export async function applyDeclared(app: App, project: Project, changes: readonly SchemaChange[]): Promise<void> {
  for (const change of changes) {
    await applySchema(app, project, [change]);
    if (change.action !== 'change' || !change.declared.changes) continue;
    await setChanges(app, project._id, change.collection, readDeclaredChanges(change.declared.changes));
  }
}
