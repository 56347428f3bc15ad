import { fieldsWithoutSets, namedSets, SERVER_ONLY } from '../rules/collection-rules.js';
import { RuleProblem } from '../rules/rule-text.js';
import { USERS } from '../users-collection.js';
import { listLoosened } from './merge-declaration.js';
import type { SchemaChange } from './plan-schema.js';

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
