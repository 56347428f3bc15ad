import type { Document } from 'bson';
import { isObjectId } from '../../../platform/ids.js';
import type { Rule } from '../../collections/rules/rule.js';
import type { AskSet } from './access-sets.js';
import {
  compileRule,
  keyOfQuestion,
  listQuestions,
  type CallerAttributes,
  type CompiledRule,
  type OpenCondition,
} from './compile-rule.js';
import { boundValuesOfDocument } from './bound-values.js';

/** Whether a compiled rule admits a document at hand, by the database's equality: a list equals each of its items. */
export function holdsIn(compiled: CompiledRule, document: Document): boolean {
  return compiled.some((conditions) =>
    conditions.every((condition) => finds(document, condition.path.split('.'), 0, condition)),
  );
}

/** Whether a rule admits a document at hand, where `ask` answers what it asks of the caller's sets. */
export function ruleAdmits(rule: Rule, attributes: CallerAttributes, document: Document, ask: AskSet): boolean {
  const facts = { attributes, boundValues: boundValuesOfDocument(document, rule.singlePaths) };
  const answers = listQuestions([rule], facts).map((each) => [keyOfQuestion(each), ask(each, document)] as const);
  return holdsIn(compileRule(rule, { ...facts, answers: new Map(answers) }), document);
}

function finds(value: unknown, parts: readonly string[], at: number, condition: OpenCondition): boolean {
  if (at === parts.length) {
    return isAmong(value, condition) || (Array.isArray(value) && value.some((item) => isAmong(item, condition)));
  }
  if (Array.isArray(value)) {
    return value.some((item: unknown) => !Array.isArray(item) && finds(item, parts, at, condition));
  }
  const part = parts[at]!;
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return false;
  return finds((value as Document)[part], parts, at + 1, condition);
}

function isAmong(value: unknown, { values }: OpenCondition): boolean {
  return values.some((wanted) => wanted === value || (isObjectId(wanted) && isObjectId(value) && wanted.equals(value)));
}
