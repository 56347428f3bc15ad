import { invalid } from '../../../errors.js';
import type { AccessRules, Collection } from '../collection.js';
import { FIELD_TYPE_RULES } from '../fields/field-type.js';
import type { Field, FieldShape, FieldType } from '../fields/field.js';
import { ROLES, rolesPlace } from '../user-roles.js';
import { USERS } from '../users-collection.js';
import { RULE_NAMES } from './collection-rules.js';
import { hasRules } from './field-rules.js';
import {
  ID_PATH,
  type CallerSet,
  type CallerValue,
  type Literal,
  type RuleCondition,
  type RuleValue,
  type SetCondition,
} from './rule.js';
import { parseRule, RuleProblem } from './rule-text.js';

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
export function checkRuleText(
  collection: Named,
  surroundings: RuleSurroundings,
  place: string,
  text: string,
  { hasSets } = { hasSets: true },
): void {
  try {
    const { alternatives, sets } = parseRule(text);
    if (!hasSets && sets.length > 0) throw new RuleProblem('the rule of a field names no sets', 0);
    for (const condition of alternatives.flat()) {
      checkCondition(collection, surroundings, condition);
      if (place === 'rules.create' && condition.kind === 'document' && condition.path === ID_PATH) {
        throw new RuleProblem('doc.id is not known before the document is stored', condition.at);
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
  const { at } = condition;
  const operand = (value: RuleValue, place: number): Operand =>
    value.kind === 'set'
      ? setOperand(collection, surroundings, value.set, place)
      : operandOf(surroundings.users, value, place);
  if (condition.kind === 'caller') {
    const left = operand(condition.left, at);
    if (left.isList) throw new RuleProblem(`${textOf(condition.left)} is a list: write "value in" before it`, at);
    checkComparison(left, condition.asks, operand(condition.right, condition.valueAt), condition, at);
    return;
  }
  checkField(
    documentOperand(collection, condition.path, condition.pathAt),
    operand(condition.value, condition.valueAt),
    condition,
    `doc.${condition.path}`,
  );
}

/** A condition on a field, whether it stands in a rule or in one of its sets. */
function checkField(
  field: Operand,
  value: Operand,
  condition: Extract<RuleCondition, { kind: 'document' }> | SetCondition,
  name: string,
): void {
  const { asks, at } = condition;
  if (asks === 'holds') {
    if (!field.isList) throw new RuleProblem(`${name} is not a list: write "=" instead of "in"`, at);
    if (value.isList) throw new RuleProblem(`${textOf(condition.value)} is a list: one value stands before "in"`, at);
    requireComparable(field, value, condition.value, at);
    return;
  }
  if (field.isList) {
    const other = textOf(condition.value);
    const advice = value.isList
      ? `${name} and ${other} are both lists: one value is compared with a list`
      : `${name} is a list: write ${other} in ${name}`;
    throw new RuleProblem(advice, at);
  }
  checkComparison(field, asks, value, condition, at);
}

/** The values of a set: a list of what its field holds. */
function setOperand(own: Named, { users, others }: RuleSurroundings, set: CallerSet, at: number): Operand {
  if (set.collection === USERS) {
    throw new RuleProblem('a set cannot be of users: user.… names what is known of the caller', at);
  }
  const named = set.collection === own.name ? own : others.get(set.collection);
  if (!named) throw new RuleProblem(`there is no collection ${set.collection}`, at);
  const mine: SetCondition = { path: set.userPath, asks: set.userAsks, value: { kind: 'attribute', name: 'id' }, at };
  const roots = [set.userPath, set.path, ...set.conditions.map(({ path }) => path)].map((path) => path.split('.')[0]);
  const hidden = named.fields.find((field) => hasRules(field) && roots.includes(field.name));
  if (hidden) {
    throw new RuleProblem(`${named.name}.${hidden.name} is not shown to everybody: sets would tell of it`, at);
  }
  for (const condition of [mine, ...set.conditions]) {
    checkField(
      documentOperand(named, condition.path, condition.at),
      operandOf(users, condition.value, condition.at),
      condition,
      condition.path,
    );
  }
  return { ...documentOperand(named, set.path, at), isList: true };
}

function checkComparison(
  left: Operand,
  asks: 'equals' | 'among',
  right: Operand,
  condition: Extract<RuleCondition, { kind: 'caller' | 'document' }> | SetCondition,
  at: number,
): void {
  const value = 'right' in condition ? condition.right : condition.value;
  if (asks === 'equals' && right.isList) throw new RuleProblem(`${textOf(value)} is a list: write "in" before it`, at);
  if (asks === 'among' && !right.isList) {
    throw new RuleProblem(`${textOf(value)} is one value: write "=" before it`, at);
  }
  requireComparable(left, right, value, at);
  if ('left' in condition) requireComparable(right, left, condition.left, at);
}

function requireComparable(field: Operand, value: Operand, written: RuleValue, at: number): void {
  const literals = written.kind === 'literal' ? [written.value] : written.kind === 'list' ? written.values : [];
  for (const literal of literals) {
    if (literal === '') throw new RuleProblem('an empty text is equal to nothing', at);
    const accepted = field.accepts === undefined || FIELD_TYPE_RULES[field.accepts].store(literal) !== undefined;
    if (kindOf(literal) !== field.kind || !accepted) {
      throw new RuleProblem(`${JSON.stringify(literal)} is no value that this can have`, at);
    }
  }
  if (literals.length === 0 && field.kind !== value.kind) {
    throw new RuleProblem(`a ${field.kind} is never equal to a ${value.kind}`, at);
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

/** The rules as a record holds them: what is not given is `nobody`; null for none. */
export function completeRules(rules: Partial<AccessRules> | null | undefined): AccessRules | null {
  if (!rules) return null;
  const { read = 'nobody', create = 'nobody', update = 'nobody', updateTo } = rules;
  return { read, create, update, delete: rules.delete ?? 'nobody', ...(updateTo !== undefined && { updateTo }) };
}
