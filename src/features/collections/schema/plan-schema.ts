import { isDeepStrictEqual } from 'node:util';
import { invalid } from '../../../errors.js';
import { checkFields } from '../fields/check-fields.js';
import type { Collection } from '../collection.js';
import { declareCollection, type CollectionDeclaration } from './collection-declaration.js';

export type SchemaChange =
  | { action: 'add'; collection: string; to: Required<CollectionDeclaration> }
  | { action: 'change'; collection: string; what: string[]; to: Required<CollectionDeclaration> }
  | { action: 'drop'; collection: string };

/**
 * What must be done so that the collections of a project are the declared ones; empty when they are already.
 * Collections that the declaration does not name are dropped only with `prune`, and `users` never. Pure; throws 400 for
 * a declaration that no collection can have.
 */
export function planSchema(
  existing: readonly Collection[],
  declared: readonly CollectionDeclaration[],
  options: { prune: boolean },
): SchemaChange[] {
  const wanted = new Map<string, Required<CollectionDeclaration>>();
  for (const declaration of declared) {
    if (wanted.has(declaration.name)) {
      throw invalid('INVALID_FILE', `The collection "${declaration.name}" is declared twice`);
    }
    wanted.set(declaration.name, complete(declaration));
  }
  const present = new Map(existing.map((collection) => [collection.name, declareCollection(collection)]));
  const changes: SchemaChange[] = [];
  for (const [collection, to] of wanted) {
    const from = present.get(collection);
    const what = from ? listDifferences(from, to) : [];
    if (!from) changes.push({ action: 'add', collection, to });
    else if (what.length > 0) changes.push({ action: 'change', collection, what, to });
  }
  for (const collection of present.keys()) {
    if (options.prune && !wanted.has(collection) && collection !== 'users')
      changes.push({ action: 'drop', collection });
  }
  return changes;
}

/** What every door shows of a change. */
export function presentSchemaChange(change: SchemaChange) {
  return {
    action: change.action,
    kind: 'collection' as const,
    name: change.collection,
    ...(change.action === 'change' && { what: change.what }),
  };
}

function complete(declaration: CollectionDeclaration): Required<CollectionDeclaration> {
  const { name, mode = 'enforced', rls = null, indexes = [] } = declaration;
  return { name, mode, fields: checkFields(declaration.fields ?? [], { name, mode }), rls, indexes };
}

/** One line per difference: `+ field`, `~ field`, `- field`, `mode: a -> b`. The order of fields does not count. */
function listDifferences(from: Required<CollectionDeclaration>, to: Required<CollectionDeclaration>): string[] {
  const before = new Map(from.fields.map((field) => [field.name, field]));
  const after = new Map(to.fields.map((field) => [field.name, field]));
  const lines: string[] = [];
  for (const [name, field] of after) {
    if (!before.has(name)) lines.push(`+ ${name}`);
    else if (!isDeepStrictEqual(before.get(name), field)) lines.push(`~ ${name}`);
  }
  for (const name of before.keys()) if (!after.has(name)) lines.push(`- ${name}`);
  if (from.mode !== to.mode) lines.push(`mode: ${from.mode} -> ${to.mode}`);
  if (!isDeepStrictEqual(from.rls, to.rls)) lines.push(`rls: ${presentRls(from)} -> ${presentRls(to)}`);
  if (!isDeepStrictEqual(from.indexes, to.indexes)) {
    lines.push(`indexes: ${from.indexes.join(' · ') || 'none'} -> ${to.indexes.join(' · ') || 'none'}`);
  }
  return lines;
}

function presentRls({ rls }: Required<CollectionDeclaration>): string {
  return rls ? `${rls.mode} by ${rls.ownerField}` : 'off';
}
