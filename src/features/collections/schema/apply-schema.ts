import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { addCollection } from '../add-collection.js';
import { changeCollection, type ChangeOptions } from '../change-collection.js';
import { requireNoViolations } from '../stored-violations.js';
import { dropCollection } from '../drop-collection.js';
import { collectionStore, requireStoredCollection } from '../collection-store.js';
import { fieldsWithoutSets, withoutSets } from '../rules/collection-rules.js';
import { listNaming } from '../rules/require-sound-rules.js';
import { writeDeclaration } from './collection-declaration.js';
import { namingCollection, resolveChange, type SchemaChange } from './plan-schema.js';

/**
 * Carries out a plan, one collection after the other, drops last. Each step is whole by itself; after a failure a new
 * plan holds what is left.
 */
export async function applySchema(
  app: App,
  project: Project,
  changes: readonly SchemaChange[],
  options: ChangeOptions = {},
): Promise<void> {
  for (const change of changes) {
    await namingCollection(change.collection, () => applyChange(app, project, change, options));
  }
}

async function applyChange(app: App, project: Project, change: SchemaChange, options: ChangeOptions): Promise<void> {
  if (change.action === 'add') {
    await addCollection(app, project, { ...writeDeclaration(change.to), ifNotExists: true });
  } else if (change.action === 'drop') {
    await closeNaming(app, project, change.collection);
    await dropCollection(app, project._id, change.collection);
  } else {
    await changeCollection(app, project._id, change.collection, (current) => resolveChange(current, change), options);
  }
}

/** Refuses what stored documents would keep from being applied. Reads documents; changes nothing. */
export async function requireSchemaFit(
  app: App,
  project: Project,
  changes: readonly SchemaChange[],
  options: ChangeOptions = {},
): Promise<void> {
  for (const change of changes) {
    if (change.action !== 'change') continue;
    const current = await requireStoredCollection(app, project._id, change.collection);
    const changed = { ...current, ...resolveChange(current, change) };
    await namingCollection(change.collection, () => requireNoViolations(app, current, changed, options));
  }
}

/** Rules that use membership sets of a dropped collection become `nobody`. */
async function closeNaming(app: App, project: Project, name: string): Promise<void> {
  const dropped = await collectionStore(app).findOne({ projectId: project._id, name, state: 'active' });
  if (!dropped) return;
  for (const naming of await listNaming(app, dropped, false)) {
    await changeCollection(app, project._id, naming.name, ({ rules, fields }) => ({
      rules: rules && withoutSets(rules, name),
      fields: fieldsWithoutSets(fields, name),
    }));
  }
}
