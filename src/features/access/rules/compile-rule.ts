import type { ObjectId, Document } from 'bson';
import { findObjectId } from '../../../platform/ids.js';
import { ID_PATH } from '../../collections/rules/collection-rules.js';
import { OWN_ID, type CallerValue, type Literal, type Rule, type RuleCondition } from '../../collections/rules/rule.js';

/** The attributes of a signed-in caller by name, `id` among them; null for a caller who is not signed in. */
export type CallerAttributes = Readonly<Record<string, unknown>> | null;

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
 * of another type: the condition does not hold.
 */
export function compileRule({ alternatives }: Rule, caller: CallerAttributes): CompiledRule {
  const compiled: OpenCondition[][] = [];
  next: for (const conditions of alternatives) {
    const open: OpenCondition[] = [];
    for (const condition of conditions) {
      const left = decide(condition, caller);
      if (left === false) continue next;
      if (left !== true) open.push(left);
    }
    if (open.length === 0) return EVERYTHING;
    compiled.push(open);
  }
  return compiled;
}

function decide(condition: RuleCondition, caller: CallerAttributes): boolean | OpenCondition {
  if (condition.kind === 'signedIn') return caller !== null;
  if (condition.kind === 'caller') {
    const value = singleOf(condition.left, caller);
    if (value === undefined) return false;
    if (condition.asks === 'equals') return singleOf(condition.right, caller) === value;
    return listOf(condition.right, caller).includes(value);
  }
  const { path, asks } = condition;
  const single = asks === 'among' ? undefined : singleOf(condition.value, caller);
  const values = asks === 'among' ? listOf(condition.value, caller) : single === undefined ? [] : [single];
  const comparable = path === ID_PATH ? values.flatMap(idOf) : values;
  return comparable.length > 0 && { path: path === ID_PATH ? '_id' : path, values: comparable };
}

function singleOf(value: CallerValue, caller: CallerAttributes): Literal | undefined {
  const found =
    value.kind === 'attribute' ? attributeOf(value.name, caller) : value.kind === 'literal' ? value.value : [];
  return isComparable(found) ? found : undefined;
}

function listOf(value: CallerValue, caller: CallerAttributes): Literal[] {
  const found =
    value.kind === 'attribute' ? attributeOf(value.name, caller) : value.kind === 'list' ? value.values : [];
  return Array.isArray(found) ? found.filter(isComparable) : [];
}

function attributeOf(name: string, caller: CallerAttributes): unknown {
  return caller !== null && Object.hasOwn(caller, name) ? caller[name] : undefined;
}

function isComparable(value: unknown): value is Literal {
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

/** Paths may repeat: each condition stands for itself, as both have to hold. */
function filterOfAll(conditions: readonly OpenCondition[]): Document {
  const filters = conditions.map(filterOfOne);
  return filters.length === 1 ? filters[0]! : { $and: filters };
}

/** The filter of one condition: the database's equality, by which a list is equal to each of its items. */
export function filterOfOne({ path, values }: OpenCondition): Document {
  return { [path]: values.length === 1 ? values[0] : { $in: [...values] } };
}

/** The attributes of a caller of whom nothing but the id is asked. */
export function ownId(userId: string): CallerAttributes {
  return { [OWN_ID]: userId };
}
