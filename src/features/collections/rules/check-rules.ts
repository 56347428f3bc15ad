import { invalid } from '../../../errors.js';
import type { AccessRules, Collection } from '../collection.js';
import { FIELD_TYPE_RULES } from '../fields/field-type.js';
import type { Field, FieldShape, FieldType } from '../fields/field.js';
import { ROLES, rolesPlace, USERS } from '../users-collection.js';
import { RULE_NAMES, rulesOf, setPaths } from './collection-rules.js';
import { hasRules, fieldRulesOf } from './field-rules.js';
import {
  ID_PATH,
  OWN_ID,
  type CallerSet,
  type CallerValue,
  type Literal,
  type Places,
  type RuleCondition,
  type RuleValue,
  type SetCondition,
  documentPaths,
} from './rule.js';
import { parseRule, RuleProblem } from './rule-text.js';
import { readUnique } from '../fields/unique.js';

type Checked = Pick<Collection, 'name' | 'fields' | 'rls' | 'rules'>;

/** What rules may name besides the fields of their own collection. */
export interface RuleSurroundings {
  /** The collection of the project's users. */
  users: Pick<Collection, 'fields'>;
  /** Other collections by name, as far as sets name them. */
  others: ReadonlyMap<string, Named>;
}

type Named = Pick<Collection, 'name' | 'fields'>;

/** The kinds of values that can be equal to each other. */
type Kind = 'text' | 'number' | 'boolean';

/** What a name stands for: one value of a kind, or a list of them. */
interface Operand {
  kind: Kind;
  isList: boolean;
  /** What a text has to be to be a value of it. */
  accepts?: FieldType;
}

const KINDS: Partial<Record<FieldType, Kind>> = { String: 'text', Ref: 'text', Number: 'number', Boolean: 'boolean' };

/** Attributes of the caller that are there without a declaration. */
const ATTRIBUTES: Readonly<Record<string, Operand>> = {
  id: { kind: 'text', isList: false, accepts: 'Ref' },
  email: { kind: 'text', isList: false },
  emailVerified: { kind: 'boolean', isList: false },
  [ROLES]: { kind: 'text', isList: true },
  mfa: { kind: 'boolean', isList: false },
};

/**
 * 400 INVALID_RULES for rules beside row-level security or on `users`; 400 INVALID_RULE with the place of a mistake in
 * a rule, of a name that is not declared and of a condition that can never hold (rules.md 2).
 */
export function checkRules(collection: Checked, surroundings: RuleSurroundings): void {
  const { rules, rls, name } = collection;
  if (!rules) return;
  if (rls) throw invalid('INVALID_RULES', `"${name}" has either row-level security or rules, not both`);
  if (name === USERS) {
    throw invalid('INVALID_RULES', 'The users collection has no rules: it is reached through /api/userAuth only');
  }
  for (const rule of RULE_NAMES) {
    const text = rules[rule];
    if (text !== undefined) checkRuleText(collection, surroundings, `rules.${rule}`, text);
  }
}

/** checkRules for one text; `place` is where it stands in the declaration, such as `rules.read`. */
function checkRuleText(
  collection: Named,
  surroundings: RuleSurroundings,
  place: string,
  text: string,
  { hasSets } = { hasSets: true },
): void {
  try {
    const { alternatives, sets } = parseRule(text);
    if (!hasSets && sets[0]) {
      throw new RuleProblem('the rule by which a field is read names no sets', sets[0].places.set);
    }
    for (const condition of alternatives.flat()) {
      checkCondition(collection, surroundings, condition);
      if (place === 'rules.create' && condition.kind === 'document' && condition.path === ID_PATH) {
        throw new RuleProblem('doc.id is not known before the document is stored', condition.places.path);
      }
    }
  } catch (error) {
    if (!(error instanceof RuleProblem)) throw error;
    const message = `${place.replace(/^rules\./, '')}: ${error.message} (at character ${error.at + 1})`;
    throw invalid('INVALID_RULE', `Invalid rule of "${collection.name}": ${message}`, {
      details: [{ field: place, rule: String(error.at), message }],
      mistake: { text, at: error.at },
    });
  }
}

function checkCondition(collection: Named, surroundings: RuleSurroundings, condition: RuleCondition): void {
  if (condition.kind === 'signedIn') return;
  const { places } = condition;
  const operand = (value: RuleValue, at: number): Operand =>
    value.kind === 'set' ? setOperand(collection, surroundings, value.set) : operandOf(surroundings.users, value, at);
  if (condition.kind === 'document') {
    const field = documentOperand(collection, condition.path, places.path);
    return checkField(field, operand(condition.value, places.value), condition, `doc.${condition.path}`);
  }
  const { left: written, asks, right } = condition;
  const left = operand(written, places.path);
  if (left.isList) throw new RuleProblem(`${textOf(written)} is a list: write "value in" before it`, places.path);
  const other = operand(right, places.value);
  requireValues(written, places.path, other);
  checkComparison(left, asks, other, right, places);
}

/** A condition on a field, whether it stands in a rule or in one of its sets. */
function checkField(
  field: Operand,
  operand: Operand,
  { asks, value, places }: Extract<RuleCondition, { kind: 'document' }> | SetCondition,
  name: string,
): void {
  if (asks === 'holds') {
    if (!field.isList) throw new RuleProblem(`${name} is not a list: write "=" instead of "in"`, places.operator);
    if (operand.isList) {
      throw new RuleProblem(`${textOf(value)} is a list: one value stands before "in"`, places.value);
    }
    return requireComparable(field, operand, value, places);
  }
  if (field.isList) {
    const advice = operand.isList
      ? `${name} and ${textOf(value)} are both lists: one value is compared with a list`
      : `${name} is a list: write ${textOf(value)} in ${name}`;
    throw new RuleProblem(advice, places.path);
  }
  checkComparison(field, asks, operand, value, places);
}

/** The values of a set: a list of what its field holds. */
function setOperand(own: Named, { users, others }: RuleSurroundings, set: CallerSet): Operand {
  const { places } = set;
  if (set.collection === USERS) {
    throw new RuleProblem('a set cannot be of users: user.… names what is known of the caller', places.set);
  }
  const named = set.collection === own.name ? own : others.get(set.collection);
  if (!named) throw new RuleProblem(`there is no collection ${set.collection}`, places.set);
  const id: CallerValue = { kind: 'attribute', name: OWN_ID };
  const mine: SetCondition = { path: set.userPath, asks: set.userAsks, value: id, places: places.user };
  const paths = [mine, ...set.conditions].map(({ path, places: { path: at } }): [string, number] => [path, at]);
  for (const [path, at] of [...paths, [set.path, places.path] as const]) {
    const hidden = named.fields.find((field) => hasRules(field) && path.split('.')[0] === field.name);
    if (hidden) {
      throw new RuleProblem(`${named.name}.${hidden.name} is not shown to everybody: sets would tell of it`, at);
    }
  }
  for (const condition of [mine, ...set.conditions]) {
    const field = documentOperand(named, condition.path, condition.places.path);
    checkField(field, operandOf(users, condition.value, condition.places.value), condition, condition.path);
  }
  return { ...documentOperand(named, set.path, places.path), isList: true };
}

function checkComparison(
  left: Operand,
  asks: 'equals' | 'among',
  right: Operand,
  value: RuleValue,
  places: Places,
): void {
  if (asks === 'equals' && right.isList) {
    throw new RuleProblem(`${textOf(value)} is a list: write "in" before it`, places.operator);
  }
  if (asks === 'among' && !right.isList) {
    throw new RuleProblem(`${textOf(value)} is one value: write "=" before it`, places.operator);
  }
  requireComparable(left, right, value, places);
}

/** Of values that are written each is looked at, of others the kinds. */
function requireComparable(field: Operand, value: Operand, written: RuleValue, places: Places): void {
  requireValues(written, places.value, field);
  if (written.kind === 'literal' || written.kind === 'list' || field.kind === value.kind) return;
  throw new RuleProblem(`a ${field.kind} is never equal to a ${value.kind}`, places.operator);
}

function requireValues(written: RuleValue, at: number, { kind, accepts }: Operand): void {
  const literals = written.kind === 'literal' ? [written.value] : written.kind === 'list' ? written.values : [];
  for (const [n, literal] of literals.entries()) {
    const place = written.kind === 'list' ? written.places[n]! : at;
    if (literal === '') throw new RuleProblem('an empty text is equal to nothing', place);
    const isAccepted = accepts === undefined || FIELD_TYPE_RULES[accepts].store(literal) !== undefined;
    if (kindOf(literal) !== kind || !isAccepted) {
      throw new RuleProblem(`${JSON.stringify(literal)} is no value that this can have`, place);
    }
  }
}

function operandOf(users: Pick<Collection, 'fields'>, value: CallerValue, at: number): Operand {
  if (value.kind === 'literal') return { kind: kindOf(value.value), isList: false };
  if (value.kind === 'list') return { kind: kindOf(value.values[0]!), isList: true };
  const { name } = value;
  // A field of that name that users can set on themselves says nothing about roles.
  const isForeign = name === ROLES && rolesPlace(users.fields) === 'none';
  if (Object.hasOwn(ATTRIBUTES, name) && !isForeign) return ATTRIBUTES[name]!;
  const field = users.fields.find((declared) => declared.name === name);
  const found = field?.protected ? fieldOperand(field) : undefined;
  if (found) return found;
  const advice =
    field && !field.protected
      ? `users can set ${name} on themselves: declare it with @protected`
      : `there is no user.${name}: rules know ${Object.keys(ATTRIBUTES).join(', ')} and fields of users with @protected`;
  throw new RuleProblem(advice, at);
}

function documentOperand({ name, fields }: Named, path: string, at: number): Operand {
  if (path === ID_PATH) {
    if (!fields.some((field) => field.name === path)) return { kind: 'text', isList: false, accepts: 'Ref' };
    throw new RuleProblem('doc.id is the _id of the document, and there is a field id: give that another name', at);
  }
  const found = findDeclared(fields, path.split('.'));
  if (!found) throw new RuleProblem(`"${name}" declares no field ${path}: a rule can only name declared ones`, at);
  const operand = fieldOperand(found.shape);
  if (!operand) {
    throw new RuleProblem(
      `doc.${path} is of type ${found.shape.type}: a rule compares texts, numbers, true and false`,
      at,
    );
  }
  return { ...operand, isList: operand.isList || found.isInList };
}

/** The shape at a path, straight through lists of objects; null where nothing is declared. */
export function findDeclared(
  fields: readonly Field[],
  path: readonly string[],
): { shape: FieldShape; isInList: boolean } | null {
  const [part, ...rest] = path;
  let shape: FieldShape | undefined = fields.find(({ name }) => name === part);
  let isInList = false;
  if (rest.length === 0) return shape ? { shape, isInList } : null;
  while (shape?.type === 'Array') {
    isInList = true;
    shape = shape.items;
  }
  const inner = shape?.fields ? findDeclared(shape.fields, rest) : null;
  return inner && { shape: inner.shape, isInList: isInList || inner.isInList };
}

function fieldOperand(shape: FieldShape): Operand | undefined {
  const item = shape.type === 'Array' ? shape.items : shape;
  const kind = item && KINDS[item.type];
  return kind && { kind, isList: shape.type === 'Array', ...(item.type === 'Ref' && { accepts: 'Ref' }) };
}

function kindOf(literal: Literal): Kind {
  return typeof literal === 'string' ? 'text' : typeof literal === 'number' ? 'number' : 'boolean';
}

function textOf(value: RuleValue): string {
  if (value.kind === 'set') return `${value.set.collection}[…].${value.set.path}`;
  if (value.kind === 'attribute') return `user.${value.name}`;
  return JSON.stringify(value.kind === 'literal' ? value.value : value.values);
}

/** The rules as a record holds them: absent rules are `nobody`; null if there are none. */
export function completeRules(rules: Partial<AccessRules> | null | undefined): AccessRules | null {
  if (!rules) return null;
  const { read = 'nobody', create = 'nobody', update = 'nobody', updateTo } = rules;
  return { read, create, update, delete: rules.delete ?? 'nobody', ...(updateTo !== undefined && { updateTo }) };
}

type CheckedFields = Pick<
  Collection,
  'name' | 'fields' | 'rls' | 'rules' | 'isPublic' | 'indexes' | 'uniques' | 'namedBy'
>;

/** Types whose values are one entry of an index. */
const SINGLE: ReadonlySet<Field['type']> = new Set(['String', 'Number', 'Boolean', 'Date', 'Ref']);

/**
 * The rules of fields (rules.md 7): 400 INVALID_RULE with the place of a mistake, and for a field that a rule names, as
 * what the rule admits would tell of it. 400 INVALID_INDEX or INVALID_UNIQUE where a refused write could tell of a
 * value that is not shown.
 */
export function checkFieldRules(collection: CheckedFields, surroundings: RuleSurroundings): void {
  const { name, fields, rls, indexes, uniques = [] } = collection;
  const ruled = fields.filter(hasRules);
  if (ruled.length === 0) return;
  for (const field of ruled) {
    for (const mark of ['read', 'write'] as const) {
      const text = field[mark];
      if (text === undefined) continue;
      checkRuleText(collection, surroundings, `fields.${field.name}.${mark}`, text, { hasSets: mark === 'write' });
    }
  }
  const rules = [
    ...Object.values(rulesOf(collection)),
    ...fieldRulesOf(fields).flatMap(({ read, write }) => [read, write]),
  ];
  const paths = [rls?.ownerField, ...documentPaths(rules), ...setPaths(collection)];
  const named = new Set(paths.map((path) => path?.split('.')[0]));
  for (const field of ruled) {
    const mark = field.hidden ? 'hidden' : field.read === undefined ? 'write' : 'read';
    const place = `fields.${field.name}.${mark}`;
    if (named.has(field.name)) {
      const message = `${place}: a rule of "${name}" names this field, so what the rule admits would tell of it`;
      const details = [{ field: place, rule: '0', message }];
      throw invalid('INVALID_RULE', `Invalid rule of "${name}": ${message}`, { details });
    }
    if (
      mark !== 'write' &&
      uniques.map(readUnique).some(({ fields: names, where }) => [...names, ...Object.keys(where)].includes(field.name))
    ) {
      const message = `${field.name} is not shown to everybody: a value that is taken could tell of it`;
      throw invalid('INVALID_UNIQUE', message, { details: [{ field: place, rule: 'unique', message }] });
    }
    const isIndexed = indexes.some((spec) => spec.split(',').some((part) => isAtField(part, field.name)));
    if (isIndexed && mark !== 'write' && !SINGLE.has(field.type)) {
      const message = `${field.name} is of type ${field.type} and not shown to everybody: an index of it could tell of its value`;
      throw invalid('INVALID_INDEX', message, { details: [{ field: place, rule: 'index', message }] });
    }
  }
}

/** A part of an index such as `-place.city` or `place:2dsphere` is of the field `place`. */
function isAtField(part: string, name: string): boolean {
  return part.replace(/^-/, '').split(/[.:]/)[0] === name;
}
