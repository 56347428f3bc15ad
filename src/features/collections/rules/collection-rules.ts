import type { AccessRules, AccessWord, Collection, Rls } from '../collection.js';
import type { Field } from '../fields/field.js';
import { fieldRulesOf } from './field-rules.js';
import {
  admitsAnyone,
  admitsNobody,
  ANYONE,
  documentPaths,
  ID_PATH,
  NOBODY,
  ruleOf,
  type CallerSet,
  type Rule,
  type RuleCondition,
} from './rule.js';
import { parseRule } from './rule-text.js';

export const RULE_NAMES = ['read', 'create', 'update', 'delete', 'updateTo'] as const;
export type RuleName = (typeof RULE_NAMES)[number];

/** The rules of a collection in the form in which they are applied. */
export type ParsedRules = Record<RuleName, Rule>;

/** Who may access a collection, as its record holds it: one of the three, or the secret key only. */
export type CollectionAccess = Pick<Collection, 'rls' | 'rules' | 'isPublic'>;

/** What `server-only` stands for: the secret key only. */
export const SERVER_ONLY: AccessRules = { read: 'nobody', create: 'nobody', update: 'nobody', delete: 'nobody' };

/** What a new collection has unless its access is declared: the secret key only. */
export const CLOSED_ACCESS: CollectionAccess = { rls: null, rules: SERVER_ONLY, isPublic: false };
export const PUBLIC_ACCESS: CollectionAccess = { rls: null, rules: null, isPublic: true };

const parsed = new WeakMap<AccessRules | Rls, ParsedRules>();

const CLOSED: ParsedRules = { read: NOBODY, create: NOBODY, update: NOBODY, updateTo: NOBODY, delete: NOBODY };
const PUBLIC: ParsedRules = { ...CLOSED, read: ANYONE };

/**
 * The rules of a collection; row-level security is written as rules here (rules.md 11). Parsed once per loaded record.
 * Throws a RuleProblem for texts that were never stored.
 */
export function rulesOf({ rules, rls, isPublic }: CollectionAccess): ParsedRules {
  if (rules) return parsedRules(rules);
  if (!rls) return isPublic ? PUBLIC : CLOSED;
  let known = parsed.get(rls);
  if (!known) parsed.set(rls, (known = desugar(rls)));
  return known;
}

/** The texts of rules in the form in which they are applied. */
export function parsedRules(rules: AccessRules): ParsedRules {
  let known = parsed.get(rules);
  if (!known) parsed.set(rules, (known = parseAll(rules)));
  return known;
}

/** True where no request with a publishable key reads or writes anything. */
export function isServerOnly(access: CollectionAccess): boolean {
  return Object.values<Rule>(rulesOf(access)).every(admitsNobody);
}

/** Who may access the collection, in one word; `rules` where only its rules say it. */
export function accessWord(access: CollectionAccess): AccessWord | 'rules' {
  if (access.rls) return access.rls.mode;
  if (access.isPublic) return 'public';
  return isServerOnly(access) ? 'server-only' : 'rules';
}

/** Who may access a collection, in a sentence. */
export const ACCESS_SENTENCES: Readonly<Record<ReturnType<typeof accessWord>, string>> = {
  public: 'everyone with the publishable key reads it, only the secret key writes.',
  'public-read': 'everyone with the publishable key reads it, signed-in users write their own documents.',
  private: 'signed-in users read and write their own documents.',
  'server-only': 'only the secret key reads and writes it.',
  rules: 'its rules say who may do what.',
};

function parseAll(rules: AccessRules): ParsedRules {
  // The same text is the same rule: what it comes to for a caller is found out once.
  const known = new Map<string, Rule>();
  const parse = (text: string): Rule => {
    let rule = known.get(text);
    if (!rule) known.set(text, (rule = parseRule(text)));
    return rule;
  };
  return {
    read: parse(rules.read),
    create: parse(rules.create),
    update: parse(rules.update),
    updateTo: parse(rules.updateTo ?? rules.update),
    delete: parse(rules.delete),
  };
}

function desugar({ mode, ownerField }: Rls): ParsedRules {
  const own: RuleCondition = {
    kind: 'document',
    path: ownerField,
    asks: 'equals',
    value: { kind: 'attribute', name: 'id' },
    places: { path: 0, operator: 0, value: 0 },
  };
  const owner = ruleOf([[own]]);
  return { read: mode === 'private' ? owner : ANYONE, create: owner, update: owner, updateTo: owner, delete: owner };
}

/**
 * Texts that rules compare are no longer, unless a field declares its own length: logs of changes keep them of earlier
 * documents to say who was shown one.
 */
export const MAX_RULED_CHARACTERS = 64;

type Named = Pick<Collection, 'rules' | 'fields' | 'namedBy'>;

/**
 * The paths of a collection's documents that decide who may do what, the id aside: its own rules name them, those of
 * its fields, or sets in rules of others.
 */
export function ruledPaths({ rules, fields, namedBy = [] }: Named): string[] {
  const ofFields = fieldRulesOf(fields).flatMap(({ read, write }) => [read, write]);
  const own = documentPaths([...(rules ? Object.values(parsedRules(rules)) : []), ...ofFields]);
  return [...new Set([...own, ...setPaths({ namedBy })])].filter((path) => path !== ID_PATH);
}

/** The fields by which sets of other collections' rules find documents of this one, and that they take values of. */
export function setPaths({ namedBy = [] }: Pick<Collection, 'namedBy'>): string[] {
  return namedBy.flatMap(({ keys, paths = [] }) => [...keys.flat(), ...paths]);
}

/** The sets that rules name, those of fields too, each once. */
export function namedSets({ rules, fields }: Pick<Collection, 'rules' | 'fields'>): CallerSet[] {
  const own = rules ? Object.values<Rule>(parsedRules(rules)) : [];
  const sets = [...own, ...fieldRulesOf(fields).map(({ write }) => write)].flatMap((rule) => rule.sets);
  return [...new Map(sets.map((set) => [set.text, set])).values()];
}

/** The rules, with `nobody` instead of those that use membership sets of the collection. */
export function withoutSets(rules: AccessRules, collection: string): AccessRules {
  const parsed = parsedRules(rules);
  const closed = RULE_NAMES.filter((name) => parsed[name].sets.some((set) => set.collection === collection)).filter(
    (name) => rules[name] !== undefined,
  );
  return { ...rules, ...Object.fromEntries(closed.map((name) => [name, 'nobody'])) };
}

/** The fields, with `nobody` instead of rules that use membership sets of the collection, or of any. */
export function fieldsWithoutSets(fields: readonly Field[], collection?: string): Field[] {
  const isNamed = (set: CallerSet): boolean => collection === undefined || set.collection === collection;
  const closed = fieldRulesOf(fields).filter(({ write }) => write.sets.some(isNamed));
  const names = closed.map(({ name }) => name);
  return fields.map((field) => (names.includes(field.name) ? { ...field, write: 'nobody' } : field));
}

/** Most fields of rules that have an index. */
const MAX_KEY_FIELDS = 8;

/** The fields by which a list under the rule `read` finds its documents: the first that each alternative names. */
export function keyPaths(collection: Pick<Collection, 'rules'>): string[] {
  if (!collection.rules) return [];
  const { read } = parsedRules(collection.rules);
  if (admitsAnyone(read)) return [];
  const paths = read.alternatives.flatMap((conditions) => {
    const first = conditions.find((condition) => condition.kind === 'document');
    return first && first.path !== ID_PATH ? [first.path] : [];
  });
  return [...new Set(paths)].slice(0, MAX_KEY_FIELDS);
}
