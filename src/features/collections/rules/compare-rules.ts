import type { AccessRules, Collection } from '../collection.js';
import { RULE_NAMES, rulesOf } from './collection-rules.js';
import type { CallerSet, Rule, RuleCondition } from './rule.js';

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
    // Places in the text, in sets too, say nothing of the meaning.
    name === 'at' ? undefined : name === 'set' ? (value as CallerSet).text : value,
  );
}

function lineOf(name: keyof AccessRules, from: AccessRules | null, to: AccessRules | null): string {
  const text = (rules: AccessRules | null): string => (rules ? (rules[name] ?? 'as update') : 'none');
  return `rule ${name}: ${text(from)} -> ${text(to)}`;
}
