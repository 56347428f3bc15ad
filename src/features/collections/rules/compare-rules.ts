import type { AccessRules, Rls } from '../collection.js';
import type { Field } from '../fields/field.js';
import { accessWord, isServerOnly, RULE_NAMES, rulesOf, type CollectionAccess } from './collection-rules.js';
import { fieldRules } from './field-rules.js';
import { withoutPlaces, type CallerSet, type Rule, type RuleCondition } from './rule.js';

/** One line for another kind of access, and one for each rule whose text is another one. */
export function listAccessDifferences(from: CollectionAccess, to: CollectionAccess): string[] {
  const [before, after] = [from.rules ?? null, to.rules ?? null];
  const isOtherKind = before && after ? false : presentAccess(from) !== presentAccess(to);
  const rules = after && (before || !isServerOnly(to)) ? RULE_NAMES : [];
  return [
    ...(isOtherKind ? [accessLine(from, to)] : []),
    ...rules.filter((name) => before?.[name] !== after?.[name]).map((name) => ruleLine(name, before, after)),
  ];
}

/**
 * Changes that grant more access than before, one line each: rules that are not the old rule with further conditions,
 * or another kind of access. Row-level security in place of public access counts as stricter: fewer read, and users
 * write only their own documents.
 */
export function listLoosenedAccess(from: CollectionAccess, to: CollectionAccess): string[] {
  if (isServerOnly(to) || (!from.rules && !to.rules && isStricterKind(from, to))) return [];
  const [before, after] = [rulesOf(from), rulesOf(to)];
  const loosened = RULE_NAMES.filter((name) => !isStricterRule(before[name], after[name])).filter(
    (name) => name !== 'updateTo' || from.rules?.updateTo !== to.rules?.updateTo,
  );
  if (loosened.length === 0) return [];
  return to.rules
    ? loosened.map((name) => ruleLine(name, from.rules ?? null, to.rules ?? null))
    : [accessLine(from, to)];
}

function isStricterKind(from: CollectionAccess, to: CollectionAccess): boolean {
  if (from.isPublic) return true;
  return from.rls !== null && to.rls !== null && isStricterRls(from.rls, to.rls);
}

/** Same owners, and no more readers than before. */
function isStricterRls(from: Rls, to: Rls): boolean {
  return to.ownerField === from.ownerField && (to.mode === from.mode || to.mode === 'private');
}

function accessLine(from: CollectionAccess, to: CollectionAccess): string {
  return `access: ${presentAccess(from)} -> ${presentAccess(to)}`;
}

/** Who may access a collection, for a person. */
function presentAccess(access: CollectionAccess): string {
  const word = accessWord(access);
  return access.rls ? `${word} by ${access.rls.ownerField}` : word;
}

/** Field rules that grant more access than before, one line each; without dropped fields. */
export function listLoosenedFields(from: readonly Field[], to: readonly Field[]): string[] {
  return from.flatMap((before) => {
    const after = to.find(({ name }) => name === before.name);
    if (!after) return [];
    const [known, next] = [fieldRules(before), fieldRules(after)];
    return (['read', 'write'] as const)
      .filter((name) => !isStricterRule(known[name], next[name]))
      .map((name) => `${before.name}, rule ${name}: ${markOf(before, name)} -> ${markOf(after, name)}`);
  });
}

function markOf(field: Field, name: 'read' | 'write'): string {
  return field.hidden ? 'hidden' : (field[name] ?? 'as the document');
}

/** True if whatever the new rule admits the old one admitted too, as far as their texts tell. */
function isStricterRule(before: Rule, after: Rule): boolean {
  const known = before.alternatives.map((conditions) => conditions.map(textOf));
  return after.alternatives.every((conditions) => {
    const texts = new Set(conditions.map(textOf));
    return known.some((earlier) => earlier.every((text) => texts.has(text)));
  });
}

function textOf(condition: RuleCondition): string {
  return JSON.stringify(condition, (name, value: unknown) =>
    name === 'set' ? (value as CallerSet).text : withoutPlaces(name, value),
  );
}

function ruleLine(name: keyof AccessRules, from: AccessRules | null, to: AccessRules | null): string {
  const text = (rules: AccessRules | null): string => (rules ? (rules[name] ?? 'as update') : 'none');
  return `rule ${name}: ${text(from)} -> ${text(to)}`;
}
