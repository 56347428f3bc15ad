import { isDeepStrictEqual } from 'node:util';
import { invalid } from '../../../errors.js';
import type { AccessRules } from '../collection.js';
import { RULE_NAMES, type CollectionAccess } from '../rules/collection-rules.js';
import { documentPaths, ID_PATH } from '../rules/rule.js';
import { parseRule } from '../rules/rule-text.js';
import { listAccessDifferences, listLoosenedAccess, listLoosenedFields } from '../rules/compare-rules.js';
import { listTightened } from '../fields/constraints/check-value.js';
import { checkFields } from '../fields/check-fields.js';
import type { Field, FieldShape } from '../fields/field.js';
import { writeExpire } from '../fields/expire.js';
import { readUnique, writeUnique, type Unique } from '../fields/unique.js';
import {
  declareChanges,
  declaredAccess,
  readDeclaredChanges,
  type CollectionDeclaration,
  type DeclaredChanges,
  type WholeDeclaration,
} from './collection-declaration.js';

/**
 * The settings of a collection once a declaration has been applied to them: what it leaves out stays. Fields and
 * indexes that a list of it no longer names stay too, unless `prune` drops them. Pure; 400 for fields that no
 * collection can have.
 */
export function mergeDeclaration(
  from: WholeDeclaration,
  declared: CollectionDeclaration,
  { prune }: { prune: boolean },
): WholeDeclaration {
  const { name } = from;
  const mode = declared.mode ?? from.mode;
  const fields = declared.fields ? resolveFieldRules(mergeFields(from, declared.fields, prune), from) : from.fields;
  const { rls, rules, isPublic } = mergeAccess(from, declared, fields);
  if (fields.length === 0 && mode === 'enforced') checkFields(fields, { name, mode });
  const indexes = mergeIndexes(from.indexes, declared.indexes ?? from.indexes, prune);
  const uniques = mergeUniques(from.uniques ?? [], declared.uniques, prune);
  const expire = declared.expire === undefined ? from.expire : declared.expire;
  const changes = from.changes || declared.changes ? { ...from.changes, ...settled(declared.changes) } : undefined;
  return {
    name,
    mode,
    fields,
    rls,
    ...(rules && { rules }),
    isPublic,
    indexes,
    ...(uniques.length > 0 && { uniques }),
    ...(expire && { expire }),
    ...(changes && { changes }),
  };
}

/** The declared access takes the place of the present one. */
function mergeAccess(
  from: WholeDeclaration,
  declared: CollectionDeclaration,
  fields: readonly Field[],
): CollectionAccess {
  const access = declaredAccess(declared, from);
  return access === from ? { ...access, rules: withoutLost(from.rules, fields) } : access;
}

/** A field's rule that names a field which is dropped shows and takes nothing from then on. */
function resolveFieldRules(fields: Field[], from: WholeDeclaration): Field[] {
  const lost = from.fields.filter(({ name }) => fields.every((field) => field.name !== name)).map(({ name }) => name);
  if (lost.length === 0) return fields;
  const namesLost = (text: string | undefined): boolean =>
    text !== undefined && documentPaths([parseRule(text)]).some((path) => lost.includes(path.split('.')[0]!));
  return fields.map((field) => {
    const before = from.fields.find(({ name }) => name === field.name);
    const gone = (['read', 'write'] as const).filter(
      (mark) => field[mark] === before?.[mark] && namesLost(field[mark]),
    );
    return gone.length === 0 ? field : { ...field, ...Object.fromEntries(gone.map((mark) => [mark, 'nobody'])) };
  });
}

/** A rule that uses a dropped field becomes `nobody`. */
function withoutLost(rules: AccessRules | null | undefined, fields: readonly Field[]): AccessRules | null {
  if (!rules) return null;
  const isLost = (path: string): boolean => path !== ID_PATH && fields.every(({ name }) => name !== path.split('.')[0]);
  const lost = RULE_NAMES.filter((name) => documentPaths([parseRule(rules[name] ?? 'nobody')]).some(isLost));
  return { ...rules, ...Object.fromEntries(lost.map((name) => [name, 'nobody'])) };
}

function settled(changes: DeclaredChanges = {}): DeclaredChanges {
  return declareChanges(readDeclaredChanges(changes));
}

function mergeFields({ name, fields: present }: WholeDeclaration, declared: readonly Field[], prune: boolean): Field[] {
  const fields = checkFields(declared, { name, mode: 'flexible' });
  if (prune) return fields;
  const named = new Map(fields.map((field) => [field.name, field]));
  const kept = present.map((field) => named.get(field.name) ?? field);
  const added = fields.filter((field) => present.every((other) => other.name !== field.name));
  return checkFields([...kept, ...added], { name, mode: 'flexible' });
}

function mergeIndexes(present: string[], declared: string[], prune: boolean): string[] {
  if (new Set(declared).size < declared.length) throw invalid('INVALID_INDEX', 'The same index is requested twice');
  const added = declared.filter((index) => !present.includes(index));
  const kept = prune ? present.filter((index) => declared.includes(index)) : present;
  return [...kept, ...added];
}

function mergeUniques(present: Unique[], declared: Unique[] | undefined, prune: boolean): Unique[] {
  if (!declared) return present;
  const isIn = (lists: Unique[], unique: Unique): boolean => lists.some((other) => isDeepStrictEqual(other, unique));
  const kept = prune ? present.filter((names) => isIn(declared, names)) : present;
  return [...kept, ...declared.filter((names) => !isIn(kept, names))];
}

const presentUniques = ({ uniques = [] }: WholeDeclaration): string => uniques.map(writeUnique).join(' · ');

/** One line per difference: `+ field`, `~ field`, `- field`, `mode: a -> b`. The order of fields does not count. */
export function listDifferences(from: WholeDeclaration, to: WholeDeclaration): string[] {
  const before = new Map(from.fields.map((field) => [field.name, field]));
  const after = new Map(to.fields.map((field) => [field.name, field]));
  const lines: string[] = [];
  for (const [name, field] of after) {
    if (!before.has(name)) lines.push(`+ ${name}`);
    else if (!isDeepStrictEqual(before.get(name), field)) lines.push(`~ ${name}`);
  }
  for (const name of before.keys()) if (!after.has(name)) lines.push(`- ${name}`);
  if (from.mode !== to.mode) lines.push(`mode: ${from.mode} -> ${to.mode}`);
  lines.push(...listAccessDifferences(from, to));
  if (!isDeepStrictEqual(from.indexes, to.indexes)) {
    lines.push(`indexes: ${from.indexes.join(' · ') || 'none'} -> ${to.indexes.join(' · ') || 'none'}`);
  }
  if (!isDeepStrictEqual(from.uniques, to.uniques)) {
    lines.push(`unique together: ${presentUniques(from) || 'none'} -> ${presentUniques(to) || 'none'}`);
  }
  if (!isDeepStrictEqual(from.expire, to.expire)) {
    lines.push(
      `expire: ${from.expire ? writeExpire(from.expire) : 'never'} -> ${to.expire ? writeExpire(to.expire) : 'never'}`,
    );
  }
  if (!isDeepStrictEqual(from.changes, to.changes)) {
    lines.push(`changes: ${presentChangesSetting(from)} -> ${presentChangesSetting(to)}`);
  }
  return lines;
}

/**
 * Lists what a declaration asks for and a collection does not have, in the words of listDifferences. Whatever the
 * collection has beyond that is no difference.
 */
export function listUnmet(from: WholeDeclaration, declared: CollectionDeclaration): string[] {
  const to = mergeDeclaration(from, declared, { prune: true });
  const isIndexed = to.indexes.every((index) => from.indexes.includes(index));
  const wanted = isIndexed ? { ...to, indexes: from.indexes } : to;
  return listDifferences(from, wanted).filter((line) => !line.startsWith('- '));
}

/**
 * The parts of a change that grant more access than before or skip a check of stored documents; one
 * line each. Dropping a field that is protected or unique counts as well, dropping any other does not.
 */
export function listLoosened(from: WholeDeclaration, to: WholeDeclaration): string[] {
  const lines = listOpened(from, to);
  const after = new Map(to.fields.map((field) => [field.name, field]));
  if (from.mode === 'enforced' && to.mode === 'flexible') lines.push('mode: enforced -> flexible');
  for (const unique of from.uniques ?? []) {
    const isKept = to.uniques?.some((other) => isDeepStrictEqual(other, unique));
    if (!isKept) lines.push(`${writeUnique(unique)}: no longer unique together`);
  }
  for (const field of from.fields) {
    const now = after.get(field.name);
    for (const mark of ['protected', 'fixed', 'stamp', 'unique'] as const) {
      if (field[mark] && !now?.[mark]) lines.push(`${field.name}: no longer ${mark}`);
    }
    const isUnique =
      field.unique === true || from.uniques?.some((unique) => readUnique(unique).fields.includes(field.name));
    if (isUnique && field.nocase && now && !now.nocase) {
      lines.push(`${field.name}: no longer unique without regard to case`);
    }
    if (now?.public && !field.public) lines.push(`${field.name}: now public`);
    if (!now) continue;
    for (const path of listLostParts(field, now)) lines.push(`${field.name}${path}: no longer declared`);
    if ((field.items ?? field).check && !(now.items ?? now).check) lines.push(`${field.name}: no longer checked`);
    for (const constraint of listTightened(now, field, field.name)) lines.push(`${constraint} is given up or widened`);
  }
  return lines;
}

/** The parts of listLoosened that grant access to more documents than before. */
export function listOpened(from: WholeDeclaration, to: WholeDeclaration): string[] {
  return [...listLoosenedAccess(from, to), ...listLoosenedFields(from.fields, to.fields)];
}

/** Paths of declared parts of a field that its new declaration has no more. */
function listLostParts(from: FieldShape, to: FieldShape): string[] {
  if (from.type !== to.type) return from.type === 'Object' || from.type === 'Array' ? [''] : [];
  if (from.items) return to.items ? listLostParts(from.items, to.items) : [''];
  return (from.fields ?? []).flatMap((part) => {
    const now = to.fields?.find(({ name }) => name === part.name);
    return now ? listLostParts(part, now).map((path) => `.${part.name}${path}`) : [`.${part.name}`];
  });
}

function presentChangesSetting({ changes: { on, keep } = {} }: WholeDeclaration): string {
  const parts = [on === undefined ? '' : on ? 'on' : 'off', keep === undefined ? '' : `kept ${keep}`];
  return parts.filter(Boolean).join(', ') || 'as the database has it';
}
