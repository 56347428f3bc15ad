import type { Field } from '../fields/field.js';
import { ANYONE, NOBODY, type Rule } from './rule.js';
import { parseRule } from './rule-text.js';

/** A field with its own read and write rules. */
export interface FieldRules {
  name: string;
  read: Rule;
  write: Rule;
}

const NONE: readonly FieldRules[] = [];
const parsed = new WeakMap<readonly Field[], readonly FieldRules[]>();

/**
 * The fields with rules of their own (rules.md 7), parsed once per loaded record. Throws a RuleProblem for texts that
 * were never stored.
 */
export function fieldRulesOf(fields: readonly Field[]): readonly FieldRules[] {
  let known = parsed.get(fields);
  if (!known) parsed.set(fields, (known = parseAll(fields)));
  return known;
}

function parseAll(fields: readonly Field[]): readonly FieldRules[] {
  const ruled = fields.filter(hasRules);
  return ruled.length === 0 ? NONE : ruled.map((field) => ({ name: field.name, ...fieldRules(field) }));
}

/** True of a field that the secret key alone, or a rule of its own, gives out or takes. */
export function hasRules({ hidden, read, write }: Field): boolean {
  return Boolean(hidden) || read !== undefined || write !== undefined;
}

/** What a field's marks say, as rules: without a mark it is as its document is. */
export function fieldRules({ hidden, read, write }: Field): Pick<FieldRules, 'read' | 'write'> {
  if (hidden) return { read: NOBODY, write: NOBODY };
  const parse = (text: string | undefined): Rule => (text === undefined ? ANYONE : parseRule(text));
  return { read: parse(read), write: parse(write) };
}
