import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { addCollection } from '../add-collection.js';
import { changeCollection } from '../change-collection.js';
import { dropCollection } from '../drop-collection.js';
import { settleChange, type SchemaChange } from './plan-schema.js';

/**
 * Carries out a plan, one collection after the other, drops last. Each step is whole by itself; after a failure a new
 * plan holds what is left.
 */
export async function applySchema(app: App, project: Project, changes: readonly SchemaChange[]): Promise<void> {
  for (const change of changes) {
    if (change.action === 'add') {
      await addCollection(app, project, { ...change.to, ifNotExists: true });
    } else if (change.action === 'drop') {
      await dropCollection(app, project._id, change.collection);
    } else {
      await changeCollection(app, project._id, change.collection, (current) => settleChange(current, change));
    }
  }
}
