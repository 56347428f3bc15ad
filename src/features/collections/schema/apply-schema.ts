import { fieldsWithoutSets, namedSets, SERVER_ONLY, withoutSets } from '../rules/collection-rules.js';
import { RuleProblem } from '../rules/rule-text.js';
import { USERS } from '../users-collection.js';
import { listLoosened } from './merge-declaration.js';
import { type SchemaChange, namingCollection, resolveChange } from './plan-schema.js';
import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { addCollection } from '../add-collection.js';
import { changeCollection, type ChangeOptions } from '../change-collection.js';
import { requireNoViolations } from '../stored-violations.js';
import { dropCollection } from '../drop-collection.js';
import { collectionStore, requireStoredCollection } from '../collection-store.js';
import { listNaming } from '../rules/require-sound-rules.js';
import { writeDeclaration } from './collection-declaration.js';

/**
 * The changes in an order in which each meets what its rules name: users first, collections before those whose rules
 * name sets of them, drops last. Where new collections name each other, one of them is for the server alone until the
 * other is there too.
 */
export function orderChanges(changes: readonly SchemaChange[]): SchemaChange[] {
  const open = new Map(changes.map((change) => [change.collection, change]));
  const ordered: SchemaChange[] = [];
  const withheld: SchemaChange[] = [];
  const begun = new Set<string>();
  const settle = (change: SchemaChange): void => {
    open.delete(change.collection);
    begun.add(change.collection);
    let isCircular = false;
    for (const name of setNames(change)) {
      const named = open.get(name);
      if (named) settle(named);
      else if (name !== change.collection && begun.has(name)) isCircular = true;
    }
    begun.delete(change.collection);
    if (!isCircular || change.action !== 'add') {
      ordered.push(change);
      return;
    }
    const { to, collection } = change;
    const closed = { ...to, rules: SERVER_ONLY, fields: fieldsWithoutSets(to.fields) };
    ordered.push({ ...change, to: closed });
    const declared = { name: collection, rules: to.rules ?? null, fields: to.fields };
    withheld.push({
      action: 'change',
      collection,
      declared,
      prune: false,
      what: [],
      loosens: listLoosened(closed, to),
    });
  };
  const users = open.get(USERS);
  if (users) settle(users);
  const kept = changes.filter(({ action }) => action !== 'drop');
  for (const change of kept) if (open.has(change.collection)) settle(change);
  return [...ordered, ...withheld, ...changes.filter(({ action }) => action === 'drop')];
}

/** What cannot be read is refused where it is applied. */
function setNames(change: SchemaChange): string[] {
  if (change.action === 'drop') return [];
  const { rules, fields = [] } = change.action === 'add' ? change.to : change.declared;
  const own = typeof rules === 'object' ? rules : null;
  try {
    return namedSets({ rules: { ...SERVER_ONLY, ...own }, fields }).map(({ collection }) => collection);
  } catch (error) {
    if (error instanceof RuleProblem) return [];
    throw error;
  }
}

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
