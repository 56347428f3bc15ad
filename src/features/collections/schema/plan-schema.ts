import { isDeepStrictEqual } from 'node:util';
import { conflict, invalid, AppError } from '../../../errors.js';
import type { CollectionSettings } from '../change-collection.js';
import type { Collection } from '../collection.js';
import { checkFieldRules, checkRules } from '../rules/check-rules.js';
import { CLOSED_ACCESS, namedSets, SERVER_ONLY } from '../rules/collection-rules.js';
import { defaultUserFields, USERS } from '../users-collection.js';
import { checkFields } from '../fields/check-fields.js';
import type { Field, FieldShape } from '../fields/field.js';
import { wholeDeclaration, type CollectionDeclaration, type WholeDeclaration } from './collection-declaration.js';
import { listDifferences, listLoosened, mergeDeclaration } from './merge-declaration.js';

/** A mistake in the declaration of one collection, of which its message says. */
export class DeclarationError extends AppError {
  readonly collection: string;

  constructor(collection: string, { kind, code, message, details, mistake, cause }: AppError) {
    super(kind, code, `collection ${collection}: ${message}`, { details, mistake, cause });
    this.collection = collection;
  }
}

/** Runs what reads or carries out a declaration; what it refuses is a DeclarationError. */
export function namingCollection<T>(collection: string, work: () => T): T {
  const named = (error: unknown): never => {
    throw error instanceof AppError && !(error instanceof DeclarationError)
      ? new DeclarationError(collection, error)
      : error;
  };
  try {
    const done = work();
    return done instanceof Promise ? (done.catch(named) as T) : done;
  } catch (error) {
    return named(error);
  }
}

export type SchemaChange =
  | { action: 'add'; collection: string; to: WholeDeclaration }
  | ({ action: 'change'; collection: string } & SettingsChange)
  | { action: 'drop'; collection: string };

/** A declaration that differs from the collection it is for. */
export interface SettingsChange {
  declared: CollectionDeclaration;
  prune: boolean;
  /** One line per difference. */
  what: string[];
  /** Those of them that loosen access or checks (listLoosened). */
  loosens: string[];
}

/**
 * The difference between a project's collections and the declared ones, as changes; empty when there is none. Anything
 * a declaration leaves out stays. Collections, fields and indexes that a list no longer names are dropped only with
 * `prune`, and `users` never. Pure; throws 400 for a declaration that no collection can have.
 */
export function planSchema(
  existing: readonly Collection[],
  declared: readonly CollectionDeclaration[],
  options: { prune: boolean },
): SchemaChange[] {
  const wanted = new Map<string, CollectionDeclaration>();
  for (const declaration of declared) {
    if (wanted.has(declaration.name)) {
      throw invalid('INVALID_FILE', `The collection "${declaration.name}" is declared twice`);
    }
    wanted.set(declaration.name, declaration);
  }
  const present = new Map(existing.map((collection) => [collection.name, wholeDeclaration(collection)]));
  const merged = new Map(
    [...wanted].map(([name, declaration]) => [
      name,
      namingCollection(name, () => mergeDeclaration(present.get(name) ?? nothing(name), declaration, options)),
    ]),
  );
  const users = merged.get(USERS) ?? present.get(USERS) ?? { fields: defaultUserFields() };
  const others = new Map(options.prune ? merged : [...present, ...merged]);
  const changes: SchemaChange[] = [];
  for (const [collection, declaration] of wanted) {
    const from = present.get(collection);
    const to = merged.get(collection)!;
    // Errors are reported before asking to confirm what the plan loosens.
    const areSame = isDeepStrictEqual([from?.rules, from?.fields], [to.rules, to.fields]);
    namingCollection(collection, () => {
      // What the file still names may go by the same plan.
      const isChecked = !areSame || (options.prune && namesSets(declaration));
      if (isChecked) checkRules(to, { users, others });
      if (!from) checkFields(to.fields, { name: collection, mode: to.mode });
      if (!isDeepStrictEqual(from?.fields, to.fields)) requireTargets(to.fields, others);
      if (isChecked) checkFieldRules(to, { users, others });
    });
    if (!from) {
      changes.push({ action: 'add', collection, to });
      continue;
    }
    const what = listDifferences(from, to);
    if (what.length === 0) continue;
    const loosens = listLoosened(from, to);
    changes.push({ action: 'change', collection, declared: declaration, ...options, what, loosens });
  }
  const dropped = [...present.values()].filter(({ name }) => options.prune && !wanted.has(name) && name !== USERS);
  for (const collection of orderDrops(dropped)) changes.push({ action: 'drop', collection });
  return changes;
}

function namesSets({ rules, fields = [] }: CollectionDeclaration): boolean {
  const own = typeof rules === 'object' && rules ? rules : {};
  return namedSets({ rules: { ...SERVER_ONLY, ...own }, fields }).length > 0;
}

/** 400 INVALID_REFERENCE for a field that refers to a collection that is neither there nor declared. */
function requireTargets(fields: readonly FieldShape[], others: ReadonlyMap<string, unknown>): void {
  for (const shape of fields) {
    const { ref, items, fields: inner = [] } = shape;
    if (ref !== undefined && ref !== USERS && !others.has(ref)) {
      const name = (shape as Partial<Field>).name;
      const where = name === undefined ? 'An item' : `"${name}"`;
      const message = `${where} refers to "${ref}", but there is no such collection: declare it, or correct Ref(${ref})`;
      throw invalid('INVALID_REFERENCE', message);
    }
    requireTargets([...inner, ...(items ? [items] : [])], others);
  }
}

/** The names of collections that go, those that refer to others with `check` before these. */
function orderDrops(dropped: readonly WholeDeclaration[]): string[] {
  const left = new Map(dropped.map((declaration) => [declaration.name, declaration]));
  const ordered: string[] = [];
  const refersTo = ({ fields }: WholeDeclaration, name: string): boolean =>
    fields.map(({ items, ...field }) => items ?? field).some(({ check, ref }) => check && ref === name);
  while (left.size > 0) {
    const all = [...left.values()];
    const next = all.find(({ name }) => !all.some((other) => other.name !== name && refersTo(other, name))) ?? all[0]!;
    left.delete(next.name);
    ordered.push(next.name);
  }
  return ordered;
}

/** The loosened rules, one line each with the collection's name, to be confirmed. */
export function listLoosenedBy(changes: readonly SchemaChange[]): string[] {
  return changes.flatMap((change) =>
    change.action === 'change' ? change.loosens.map((line) => `${change.collection}: ${line}`) : [],
  );
}

export function dropsFields(changes: readonly SchemaChange[]): boolean {
  return changes.some((change) => change.action === 'change' && change.what.some((line) => line.startsWith('- ')));
}

/**
 * The settings that a planned change leads to from what the collection is now. 409 when that would loosen more than
 * was planned, because the collection changed in between.
 */
export function resolveChange(current: Collection, { declared, prune, loosens }: SettingsChange): CollectionSettings {
  const from = wholeDeclaration(current);
  const { name, changes: _apart, rules, ...rest } = mergeDeclaration(from, declared, { prune });
  const to = { ...rest, ...(rules && { rules }) };
  const unplanned = listLoosened(from, { name, ...to }).find((line) => !loosens.includes(line));
  if (unplanned !== undefined) {
    const message = `"${name}" was changed meanwhile, and this would loosen it (${unplanned}): look at the plan again`;
    throw conflict('CHANGED_MEANWHILE', message);
  }
  return { ...to, rules: rules ?? null, uniques: to.uniques ?? [], expire: to.expire ?? null };
}

/** A change as HTTP and command line show it. */
export function presentSchemaChange(change: SchemaChange) {
  return {
    action: change.action,
    kind: 'collection' as const,
    name: change.collection,
    ...(change.action === 'change' && {
      what: change.what,
      ...(change.loosens.length > 0 && { loosens: change.loosens }),
    }),
  };
}

function nothing(name: string): WholeDeclaration {
  return { name, mode: 'enforced', fields: [], ...CLOSED_ACCESS, indexes: [] };
}
