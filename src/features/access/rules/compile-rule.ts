import type { ObjectId, Document } from 'bson';
import { findObjectId } from '../../../platform/ids.js';
import {
  ID_PATH,
  OWN_ID,
  type CallerSet,
  type Literal,
  type Rule,
  type RuleCondition,
  type RuleValue,
  type SetCondition,
} from '../../collections/rules/rule.js';

/** The attributes of a signed-in caller by name, `id` among them; null for a caller who is not signed in. */
export type CallerAttributes = Readonly<Record<string, unknown>> | null;

/** A question about one of the caller's sets: whether a value is in it, or all that it holds. */
export interface SetQuestion {
  set: CallerSet;
  value?: Literal;
  /** The field of the documents that the set is compared with; null where they are not looked at. */
  path: string | null;
}

/**
 * By path: what the documents in question all hold there, each a field that is declared to hold one value; null for
 * nothing that a rule could compare.
 */
export type BoundValues = ReadonlyMap<string, Literal | null>;

/** What is known before any document is looked at. */
export interface RuleFacts {
  attributes: CallerAttributes;
  boundValues?: BoundValues;
  /** The answers to what listQuestions asks, by keyOfQuestion. */
  answers?: ReadonlyMap<string, boolean | readonly Literal[]>;
}

/** A condition that is left for a document: the path holds one of the values, or a list with one of them. */
export interface OpenCondition {
  path: string;
  values: readonly (Literal | ObjectId)[];
}

/**
 * A rule for one caller: alternatives of conditions on the document. None: nothing is admitted; one without conditions:
 * everything is.
 */
export type CompiledRule = readonly (readonly OpenCondition[])[];

export const EVERYTHING: CompiledRule = [[]];

/** A filter that matches no document. */
export const NOTHING: Document = { _id: { $in: [] } };

/**
 * Decides what a rule asks of the caller, and leaves what it asks of the document (rules.md 3). Absent, null, empty or
 * of another type: the condition does not hold. An unanswered question is taken as false.
 */
export function compileRule({ alternatives }: Rule, facts: RuleFacts): CompiledRule {
  const compiled: OpenCondition[][] = [];
  next: for (const conditions of alternatives) {
    const open: OpenCondition[] = [];
    for (const condition of conditions) {
      const left = decideKnown(condition, facts);
      if (left === false) continue next;
      if (left !== true) open.push(left);
    }
    if (open.length === 0) return EVERYTHING;
    compiled.push(open);
  }
  return compiled;
}

/**
 * What has to be known of the caller's sets to compile a rule: of alternatives that are false anyway nothing, and
 * nothing at all where one holds without sets. Each question once.
 */
export function listQuestions(rules: readonly Rule[], facts: RuleFacts): SetQuestion[] {
  const asked = new Map<string, SetQuestion>();
  for (const { alternatives, sets } of rules) {
    if (sets.length === 0) continue;
    const decided = alternatives.map((conditions) => conditions.map((condition) => decide(condition, facts)));
    if (decided.some((conditions) => conditions.every((left) => left === true))) continue;
    for (const conditions of decided) {
      if (conditions.includes(false)) continue;
      for (const left of conditions) if (isQuestion(left)) asked.set(keyOfQuestion(left), left);
    }
  }
  return [...asked.values()];
}

/** What rules come to for a caller whatever is in the sets, which stand there by name. */
export function shapeOf(rules: readonly Rule[], attributes: CallerAttributes): Document {
  const named = (condition: RuleCondition): unknown => {
    const left = decide(condition, { attributes });
    return isQuestion(left) ? { ...left, set: left.set.text, members: setFilter(left.set, attributes) } : left;
  };
  const shapes = rules.map(({ alternatives }) => alternatives.map((conditions) => conditions.map(named)));
  return { shapes, user: attributes?.[OWN_ID] ?? null };
}

/** Questions with the same answer have the same key, as long as the caller's attributes stay the same. */
export function keyOfQuestion({ set, value }: SetQuestion): string {
  return value === undefined ? set.text : `${JSON.stringify(value)} ${set.text}`;
}

function isQuestion(left: boolean | OpenCondition | SetQuestion): left is SetQuestion {
  return typeof left === 'object' && 'set' in left;
}

function decideKnown(condition: RuleCondition, facts: RuleFacts): boolean | OpenCondition {
  const left = decide(condition, facts);
  if (!isQuestion(left)) return left;
  const answer = facts.answers?.get(keyOfQuestion(left)) ?? false;
  if (typeof answer === 'boolean' || left.path === null) return answer === true;
  return openCondition(left.path, answer);
}

function decide(condition: RuleCondition, facts: RuleFacts): boolean | OpenCondition | SetQuestion {
  const { attributes: caller, boundValues } = facts;
  if (condition.kind === 'signedIn') return caller !== null;
  if (condition.kind === 'caller') {
    const value = singleOf(condition.left, caller);
    if (value === undefined) return false;
    if (condition.right.kind === 'set') return caller !== null && { set: condition.right.set, value, path: null };
    if (condition.asks === 'equals') return singleOf(condition.right, caller) === value;
    return listOf(condition.right, caller).includes(value);
  }
  const { path, asks } = condition;
  const bound = asks === 'holds' ? undefined : boundValues?.get(path);
  if (bound === null) return false;
  if (condition.value.kind === 'set') {
    if (caller === null) return false;
    return { set: condition.value.set, path, ...(bound !== undefined && { value: bound }) };
  }
  const values = valuesOf(condition, caller);
  if (bound !== undefined) return values.includes(bound);
  return openCondition(path, values);
}

function openCondition(path: string, values: readonly Literal[]): false | OpenCondition {
  const comparable = path === ID_PATH ? values.flatMap(idOf) : values;
  return comparable.length > 0 && { path: path === ID_PATH ? '_id' : path, values: comparable };
}

function singleOf(value: RuleValue, caller: CallerAttributes): Literal | undefined {
  const found =
    value.kind === 'attribute' ? attributeOf(value.name, caller) : value.kind === 'literal' ? value.value : [];
  return isComparable(found) ? found : undefined;
}

function listOf(value: RuleValue, caller: CallerAttributes): Literal[] {
  const found =
    value.kind === 'attribute' ? attributeOf(value.name, caller) : value.kind === 'list' ? value.values : [];
  return Array.isArray(found) ? found.filter(isComparable) : [];
}

function attributeOf(name: string, caller: CallerAttributes): unknown {
  return caller !== null && Object.hasOwn(caller, name) ? caller[name] : undefined;
}

/** A value that rules compare. */
export function isComparable(value: unknown): value is Literal {
  return (
    (typeof value === 'string' && value !== '') ||
    (typeof value === 'number' && Number.isFinite(value)) ||
    typeof value === 'boolean'
  );
}

function idOf(value: Literal): ObjectId[] {
  const id = typeof value === 'string' ? findObjectId(value) : null;
  return id ? [id] : [];
}

/** True when there is no document that the rule admits. */
export function admitsNothing(compiled: CompiledRule): boolean {
  return compiled.length === 0;
}

const filters = new WeakMap<CompiledRule, Document | null>();

/** The compiled rule as a filter, the same one each time; null where it leaves nothing out. */
export function filterOf(compiled: CompiledRule): Document | null {
  let filter = filters.get(compiled);
  if (filter === undefined) filters.set(compiled, (filter = makeFilter(compiled)));
  return filter;
}

function makeFilter(compiled: CompiledRule): Document | null {
  if (compiled.some((conditions) => conditions.length === 0)) return null;
  const alternatives = compiled.map(filterOfAll);
  if (alternatives.length === 0) return NOTHING;
  return alternatives.length === 1 ? alternatives[0]! : { $or: alternatives };
}

/** Paths may repeat: each condition is independent, as both have to hold. */
function filterOfAll(conditions: readonly OpenCondition[]): Document {
  const filters = conditions.map(filterOfOne);
  return filters.length === 1 ? filters[0]! : { $and: filters };
}

/** The filter of one condition: the database's equality, by which a list is equal to each of its items. */
function filterOfOne({ path, values }: OpenCondition): Document {
  return { [path]: values.length === 1 ? values[0] : { $in: [...values] } };
}

/** The attributes of a caller of whom nothing but the id is asked. */
export function ownId(userId: string): CallerAttributes {
  return { [OWN_ID]: userId };
}

/**
 * What documents of the set's collection meet that belong to the caller; null where none can. It says nothing of trash.
 */
export function setFilter({ userPath, conditions }: CallerSet, caller: CallerAttributes): Document | null {
  const id = singleOf({ kind: 'attribute', name: OWN_ID }, caller);
  const open: OpenCondition[] = [];
  const own = id === undefined ? false : openCondition(userPath, [id]);
  const others = conditions.map(({ path, ...condition }) => openCondition(path, valuesOf(condition, caller)));
  for (const left of [own, ...others]) {
    if (left === false) return null;
    open.push(left);
  }
  return filterOfAll(open);
}

/** The values of which a document has to hold one. */
function valuesOf(
  { asks, value }: Pick<SetCondition, 'asks'> & { value: RuleValue },
  caller: CallerAttributes,
): Literal[] {
  if (asks === 'among') return listOf(value, caller);
  const single = singleOf(value, caller);
  return single === undefined ? [] : [single];
}
