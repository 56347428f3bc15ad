import { EJSON, type Document } from 'bson';
import type { Matcher } from '../../../platform/database/database.js';
import type { FieldRules } from '../../collections/rules/field-rules.js';
import type { AskSet } from './caller-sets.js';
import { holdsIn, ruleAdmits } from './holds-in.js';
import { admitsNothing, compileRule, filterOf, type CallerAttributes, type CompiledRule } from './compile-rule.js';

/** A field that is shown in the documents that a filter matches. */
interface PartlySeen {
  name: string;
  filter: Document;
  matcher: Matcher;
}

/** What a caller does not see of documents that it reads (rules.md 7). */
export interface FieldSight {
  /** Fields that the caller cannot name, since some document does not show them. */
  readonly unnamed: ReadonlySet<string>;
  /** Those of them that no document shows. */
  readonly unseen: readonly string[];
  readonly partly: readonly PartlySeen[];
  /** The same for callers who see the same. */
  readonly key: string;
}

/** What somebody with these attributes does not see; null for nothing. */
export function sightOf(
  rules: readonly FieldRules[],
  attributes: CallerAttributes,
  openMatcher: (filter: Document) => Matcher,
): FieldSight | null {
  const unseen: string[] = [];
  const partly: PartlySeen[] = [];
  for (const { name, read } of rules) {
    const compiled = compileRule(read, { attributes });
    const filter = filterOf(compiled);
    if (filter === null) continue;
    if (admitsNothing(compiled)) unseen.push(name);
    else partly.push({ name, filter, matcher: openMatcher(filter) });
  }
  if (unseen.length === 0 && partly.length === 0) return null;
  const unnamed = new Set([...unseen, ...partly.map(({ name }) => name)]);
  const key = EJSON.stringify([unseen, partly.map(({ name, filter }) => [name, filter])]);
  return { unnamed, unseen, partly, key };
}

/** What rules of fields come to for a writer. */
export interface FieldAccess {
  sight: FieldSight | null;
  /** Fields that have a rule of their own, by name. */
  guarded: ReadonlyMap<string, GuardedField>;
}

export interface GuardedField {
  read: CompiledRule;
  /** True where it may be set in every document. */
  isOpen: boolean;
  /** Whether it may be set in a document at hand is decided inside of the write. */
  hasSets: boolean;
  /** Whether it may be set there, where `ask` answers what the rule asks of the writer's sets. */
  maySet: (document: Document, ask: AskSet) => boolean;
}

/** What a writer with these attributes sees and sets; null where the fields have no rules. */
export function fieldAccessOf(
  rules: readonly FieldRules[],
  attributes: CallerAttributes,
  openMatcher: (filter: Document) => Matcher,
): FieldAccess | null {
  if (rules.length === 0) return null;
  const guarded = rules.map(({ name, read, write }): [string, GuardedField] => {
    const compiled = compileRule(write, { attributes });
    const hasSets = write.sets.length > 0;
    const maySet: GuardedField['maySet'] = (document, ask) =>
      hasSets ? ruleAdmits(write, attributes, document, ask) : holdsIn(compiled, document);
    const isOpen = filterOf(compiled) === null;
    return [name, { read: compileRule(read, { attributes }), isOpen, hasSets, maySet }];
  });
  return { sight: sightOf(rules, attributes, openMatcher), guarded: new Map(guarded) };
}
