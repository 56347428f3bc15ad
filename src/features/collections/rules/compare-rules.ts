import type { AccessRules, Collection } from '../collection.js';
import type { Field } from '../fields/field.js';
import { RULE_NAMES, rulesOf } from './collection-rules.js';
import { fieldRules } from './field-rules.js';
import { withoutPlaces, type CallerSet, type Rule, type RuleCondition } from './rule.js';

type Ruled = Pick<Collection, 'rls' | 'rules'>;

/** One line for each rule whose text is another one. */
export function listRuleDifferences(from: AccessRules | null, to: AccessRules | null): string[] {
  return RULE_NAMES.filter((name) => from?.[name] !== to?.[name]).map((name) => lineOf(name, from, to));
}

/**
 * The rules by which somebody may do more than before, one line each: those that are not the old rule with further
 * conditions.
 */
export function listLoosenedRules(from: Ruled, to: Ruled): string[] {
  if (!from.rules && !to.rules) return [];
  const [before, after] = [rulesOf(from), rulesOf(to)];
  return RULE_NAMES.filter((name) => !isStricterRule(before[name], after[name]))
    .filter((name) => name !== 'updateTo' || from.rules?.updateTo !== to.rules?.updateTo)
    .map((name) => lineOf(name, from.rules ?? null, to.rules ?? null));
}

/** The rules of fields by which somebody sees or sets more than before, one line each; not of dropped ones. */
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

function lineOf(name: keyof AccessRules, from: AccessRules | null, to: AccessRules | null): string {
  const text = (rules: AccessRules | null): string => (rules ? (rules[name] ?? 'as update') : 'none');
  return `rule ${name}: ${text(from)} -> ${text(to)}`;
}
