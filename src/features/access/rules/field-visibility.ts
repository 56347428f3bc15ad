import { EJSON, type Document } from 'bson';
import type { Matcher } from '../../../platform/database/database.js';
import type { FieldRules } from '../../collections/rules/field-rules.js';
import type { AskSet } from './access-sets.js';
import { holdsIn, ruleAdmits } from './holds-in.js';
import { admitsNothing, compileRule, filterOf, type CallerAttributes, type CompiledRule } from './compile-rule.js';

/** A field that is visible in documents that match the filter. */
interface ConditionalField {
  name: string;
  filter: Document;
  matcher: Matcher;
}

/** The fields that are hidden from a caller (rules.md 7). */
export interface FieldVisibility {
  /** Fields that the caller cannot name in a query: hidden in all or some documents. */
  readonly restricted: ReadonlySet<string>;
  /** Fields that are hidden in all documents. */
  readonly hidden: readonly string[];
  readonly conditional: readonly ConditionalField[];
  /** Equal for callers with the same visible fields. */
  readonly key: string;
}

/** The fields hidden from a caller with these attributes; null if there are none. */
export function fieldVisibilityOf(
  rules: readonly FieldRules[],
  attributes: CallerAttributes,
  openMatcher: (filter: Document) => Matcher,
): FieldVisibility | null {
  const hidden: string[] = [];
  const conditional: ConditionalField[] = [];
  for (const { name, read } of rules) {
    const compiled = compileRule(read, { attributes });
    const filter = filterOf(compiled);
    if (filter === null) continue;
    if (admitsNothing(compiled)) hidden.push(name);
    else conditional.push({ name, filter, matcher: openMatcher(filter) });
  }
  if (hidden.length === 0 && conditional.length === 0) return null;
  const restricted = new Set([...hidden, ...conditional.map(({ name }) => name)]);
  const key = EJSON.stringify([hidden, conditional.map(({ name, filter }) => [name, filter])]);
  return { restricted, hidden, conditional, key };
}

/** The result of field rules for a writer. */
export interface FieldAccess {
  visibility: FieldVisibility | null;
  /** Fields with rules, by name. */
  guarded: ReadonlyMap<string, GuardedField>;
}

export interface GuardedField {
  read: CompiledRule;
  /** True if the writer may set the field in every document. */
  isOpen: boolean;
  /** Whether the write rule uses membership sets, which are read inside the transaction. */
  hasSets: boolean;
  /** Whether the writer may set the field in this document; `ask` looks up membership sets. */
  maySet: (document: Document, ask: AskSet) => boolean;
}

/** The fields with rules that a writer may read and set. */
export function fieldAccessOf(
  rules: readonly FieldRules[],
  attributes: CallerAttributes,
  openMatcher: (filter: Document) => Matcher,
): FieldAccess {
  const guarded = rules.map(({ name, read, write }): [string, GuardedField] => {
    const compiled = compileRule(write, { attributes });
    const hasSets = write.sets.length > 0;
    const maySet: GuardedField['maySet'] = (document, ask) =>
      hasSets ? ruleAdmits(write, attributes, document, ask) : holdsIn(compiled, document);
    const isOpen = filterOf(compiled) === null;
    return [name, { read: compileRule(read, { attributes }), isOpen, hasSets, maySet }];
  });
  return { visibility: fieldVisibilityOf(rules, attributes, openMatcher), guarded: new Map(guarded) };
}
