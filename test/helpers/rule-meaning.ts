import { ObjectId, serialize } from 'bson';

import {
  compileRule,
  filterOf,
  keyOfQuestion,
  listQuestions,
  setFilter,
  type CallerAttributes,
  type CompiledRule,
  type BoundValues,
} from '../../src/features/access/rules/compile-rule.js';
import { holdsIn } from '../../src/features/access/rules/holds-in.js';
import { boundValuesOf, boundValuesOfDocument, valuesAt } from '../../src/features/access/rules/bound-values.js';
import type { Literal, Rule } from '../../src/features/collections/rules/rule.js';
import { parseRule } from '../../src/features/collections/rules/rule-text.js';
import { loadMatchers, type Matcher } from '../../src/platform/database/database.js';
import { openRandom, type Random } from './random.js';
import { generateFields, generateJoin, generateRule, type Values } from './ruled-world.js';

const USER_IDS = ['u1', 'u2', 'u3'];
const TEXTS = ['red', 'green', 'blue'];

type OpenMatcher = (filter: object) => Matcher;

/** What a run came to: each count says how often something was asked that could have been answered otherwise. */
export interface Meant {
  admitted: number;
  refused: number;
  withSets: number;
  bound: number;
  afterRefused: number;
  smaller: number;
  /** Rules × callers × stores that were compared with the independent reading. */
  compared: number;
}

/** A rule for a caller in a store of memberships. */
interface Case {
  rule: Rule;
  attributes: CallerAttributes;
  joins: readonly Values[];
  open: OpenMatcher;
}

/**
 * What random rules come to for random callers, as filters for lists, decided for what a document holds, and for what
 * an update leads to: the same as an independent reading of the rule. Less of the caller, of the document or of the
 * memberships never admits more.
 */
export async function searchRuleMeaning(seed: number, cases: number): Promise<Meant> {
  const random = openRandom(seed);
  const open = await loadMatchers();
  const meant: Meant = { admitted: 0, refused: 0, withSets: 0, bound: 0, afterRefused: 0, smaller: 0, compared: 0 };
  for (let n = 0; n < cases; n++) {
    const joins = new Map(Array.from({ length: 4 }, (_, at) => [String(at), generateJoin(random, USER_IDS)]));
    const generated = generateRule(random, joins);
    const rule = parseRule(generated.text);
    const user = random.chance(0.1) ? null : generateUser(random);
    const asked: Case = { rule, attributes: user as CallerAttributes, joins: [...joins.values()], open };
    const all = matcherOf(asked, compiledFor(asked));
    if (rule.sets.length > 0) meant.withSets++;
    for (let each = 0; each < 5; each++) {
      const document = generateFields(random, USER_IDS);
      const admits = generated.admits(user, document);
      const what = (kind: string): string =>
        `case ${n}, ${kind}: ${generated.text} for ${JSON.stringify({ user, document, joins: asked.joins })}`;
      meant[admits ? 'admitted' : 'refused']++;
      requireSame(all(document), admits, () => what('list'));
      const held = boundValuesOfDocument(document, rule.singlePaths);
      requireSame(matcherOf(asked, compiledFor(asked, held))(document), admits, () => what('held'));
      const path = random.pick(rule.singlePaths.length > 0 ? rule.singlePaths : ['colour']);
      const conditions = [{ [path]: { $eq: valuesAt(document, path.split('.'))[0] ?? null } }];
      if (open(conditions[0]!).matches(bytesOf(document))) {
        meant.bound++;
        const asPinned = compiledFor(asked, boundValuesOf(conditions, rule.singlePaths));
        requireSame(matcherOf(asked, asPinned)(document), admits, () => what('bound'));
      }
      const after = expectAfter(random, asked, document, (changed) => generated.admits(user, changed), what);
      if (!after) meant.afterRefused++;
      const verdicts = compareSmaller(random, asked, document, (less, lessDocument) => {
        const known = [...joins];
        joins.clear();
        less.joins.forEach((join, at) => joins.set(String(at), join));
        const verdict = generated.admits(less.attributes as Values | null, lessDocument);
        joins.clear();
        for (const [id, join] of known) joins.set(id, join);
        return verdict;
      });
      const smaller = verdicts.filter(Boolean).length;
      if (smaller > 0) requireSame(admits, true, () => what('less is admitted'));
      meant.smaller += smaller;
      meant.compared += 1 + verdicts.length;
    }
  }
  return meant;
}

function generateUser(random: Random): Values {
  const maybe = (value: () => unknown): unknown => (random.chance(0.25) ? undefined : value());
  return JSON.parse(
    JSON.stringify({
      id: random.pick(USER_IDS),
      team: maybe(() => random.pick([...TEXTS, ''])),
      teams: maybe(() => TEXTS.filter(() => random.chance(0.4))),
      level: maybe(() => random.below(4)),
      staff: maybe(() => random.chance(0.5)),
      emailVerified: random.chance(0.5),
    }),
  ) as Values;
}

/** Answers questions from the memberships by the filters that the product makes of them. */
function compiledFor({ rule, attributes, joins, open }: Case, boundValues?: BoundValues): CompiledRule {
  const facts = { attributes, ...(boundValues && { boundValues }) };
  const answers = new Map<string, boolean | Literal[]>();
  for (const question of listQuestions([rule], facts)) {
    const { set, value } = question;
    const filter = setFilter(set, attributes);
    const matcher = filter && open(filter);
    const members = joins.filter((join) => matcher?.matches(bytesOf(join)));
    const values = members.flatMap((join) => valuesAt(join, set.path.split('.')));
    answers.set(keyOfQuestion(question), value === undefined ? values : values.includes(value));
  }
  return compileRule(rule, { ...facts, answers });
}

function matcherOf({ open }: Case, compiled: CompiledRule): (document: Values) => boolean {
  const filter = filterOf(compiled);
  if (filter === null) return () => true;
  const matcher = open(filter);
  return (document) => matcher.matches(bytesOf(document));
}

function bytesOf(fields: Values): Buffer {
  return Buffer.from(serialize({ _id: new ObjectId(), ...fields }));
}

/** What an update may lead to is what the rule says of the document afterwards; whether it does. */
function expectAfter(
  random: Random,
  asked: Case,
  before: Values,
  admits: (changed: Values) => boolean,
  what: (kind: string) => string,
): boolean {
  const given = generateFields(random, USER_IDS);
  const names = Object.keys(given).filter(() => random.chance(0.5));
  const set = Object.fromEntries(names.map((name) => [name, given[name]]));
  const unset = Object.keys(before).filter((name) => !names.includes(name) && random.chance(0.15));
  const after: Values = { ...before, ...set };
  for (const name of unset) delete after[name];
  const compiled = compiledFor(asked);
  const isAdmitted = holdsIn(compiled, after);
  requireSame(isAdmitted, admits(after), () => what(`after ${JSON.stringify({ set, unset })}`));
  return isAdmitted;
}

/** What is said of less of the document, of the caller and of the memberships, each as the independent reading says. */
function compareSmaller(
  random: Random,
  asked: Case,
  document: Values,
  admits: (less: Case, document: Values) => boolean,
): boolean[] {
  const without = (values: Values): Values => {
    const names = Object.keys(values);
    const gone = names.length > 0 ? random.pick(names) : '';
    return Object.fromEntries(Object.entries(values).filter(([name]) => name !== gone));
  };
  const { attributes, joins } = asked;
  const lessOfUser = attributes && without(attributes as Values);
  const smaller: [Case, Values][] = [
    [asked, without(document)],
    [{ ...asked, attributes: null }, document],
    [{ ...asked, attributes: lessOfUser?.id === undefined ? null : lessOfUser }, document],
    [{ ...asked, joins: joins.filter(() => random.chance(0.5)) }, document],
    [{ ...asked, joins: joins.map(without) }, document],
  ];
  return smaller.map(([less, lessDocument]) => {
    const verdict = matcherOf(less, compiledFor(less))(lessDocument);
    requireSame(verdict, admits(less, lessDocument), () => `less: ${JSON.stringify([less, lessDocument])}`);
    return verdict;
  });
}

/** An assertion of the runner for each would take longer than what is asserted. */
function requireSame(given: boolean, expected: boolean, what: () => string): void {
  if (given !== expected) throw new Error(`${String(given)} instead of ${String(expected)}: ${what()}`);
}
