import { ObjectId } from '../codec/bson.js';
import { type Equality, isPlainValue, type PlainValue } from '../query/match/equalities.js';
import type { Alternative, Conjunct, Filter } from '../query/match/match.js';
import type { SortPart } from '../query/sort.js';
import type { CollectionEntry } from '../storage/keys/index-definition.js';
import { DOCUMENT_SPACE } from '../storage/format/key-spaces.js';
import { KeyWriter, MAX_ID_BYTES } from '../storage/encoding/key-encoding.js';
import { indexSpace, type KeyRange, keyRanges } from './key-ranges.js';
import { ALONE, type Plan } from './plan.js';
import { mostRangesFor, rangesOf } from './plan-cost.js';

const writer = new KeyWriter();

/** A condition that a template can be filled with: a field equals a plain value, or one of several. */
type Condition = Equality | ListCondition;

interface ListCondition {
  readonly path: string;
  readonly values: readonly PlainValue[];
}

/** The conditions of a filter, and of each branch of its one `$or`, if it has one. */
interface Conditions {
  readonly own: readonly Condition[];
  readonly branches: readonly (readonly Condition[])[];
}

/** A remembered choice: how the plan of another query of the same shape was made, without its values. */
interface Template {
  readonly plan: Plan;
  /** For the plan, or for each of its branches: which of the conditions each leading field of its index is bound by. */
  readonly places: readonly (readonly number[])[];
  /** The last filling, where making it again takes longer than seeing that it would be the same. */
  last: { readonly conditions: Conditions; readonly plan: Plan } | null;
}

const MAX_TEMPLATES = 100;
/** A shape with more branches, or a list of more values, is planned each time: planning is little of such a read. */
const MAX_BRANCHES = 16;
const MAX_VALUES = 200;
/** A filling is kept that has so many ranges: somebody's page and its count, and the same page again, ask for one. */
const MIN_KEPT_RANGES = 4;
const MAX_KEPT_RANGES = 1_000;
/** How many are kept in all, the latest. */
const MAX_KEPT = 64;
const kept: Template[] = [];
const templates = new WeakMap<CollectionEntry, Map<string, Template>>();

/**
 * The plan for a filter. An equality on `_id` leads to its document at once, whatever else is asked. A filter of
 * equalities and lists of values, possibly with one `$or` of such, is planned by `choose` once for each shape of fields
 * and sort and then filled with the values of each query, for as long as the collection's definition stays what it is.
 * A choice is `probed` when it hung on how frequent the values are.
 */
export function planByShape(
  collection: CollectionEntry,
  filter: Filter,
  sort: readonly SortPart[],
  limit: number,
  choose: () => { plan: Plan; probed: boolean },
): Plan {
  const { equalities } = filter;
  const id = idCondition(filter);
  const point = id === undefined ? null : planPoint(collection, id.value as PlainValue, equalities?.length === 1);
  if (point !== null) return point;
  const conditions = equalities === null ? readConditions(filter) : { own: equalities, branches: NO_BRANCHES };
  const shape = conditions === null ? null : shapeOf(collection, conditions, sort);
  if (conditions === null || shape === null) return choose().plan;
  let known = templates.get(collection);
  if (known === undefined) templates.set(collection, (known = new Map<string, Template>()));
  const template = known.get(shape);
  if (template !== undefined) {
    const plan = fill(template, conditions);
    if (plan !== null && rangesOf(plan) <= mostRangesFor(limit)) return plan;
  }
  const { plan, probed } = choose();
  if (template === undefined && !probed) {
    const made = templateOf(plan, conditions);
    if (known.size >= MAX_TEMPLATES) known.clear();
    // A value too long for a key would leave its mark on the plan.
    if (made !== null && fill(made, conditions) !== null) known.set(shape, made);
  }
  return plan;
}

const NO_BRANCHES: Conditions['branches'] = [];

/** The condition of a filter that its documents have one plain `_id`. */
export function idCondition(filter: Filter): { readonly value: unknown } | undefined {
  const { known } = filter;
  return known === null ? filter.conjuncts.find(isPlainId) : known.find(({ path }) => path === '_id');
}

function isPlainId({ path, op, value }: Conjunct): boolean {
  return path === '_id' && op === 'eq' && isPlainValue(value);
}

/** The key of the document with an `_id`; null when that is too long for one. */
export function pointKey(collection: CollectionEntry, id: unknown): Buffer | null {
  const key = writer.reset(DOCUMENT_SPACE, collection.id).component(id, false, MAX_ID_BYTES).take();
  return writer.cut ? null : key;
}

/** The plan for an equality on `_id`, alone or not; null when its value is too long for a key. */
function planPoint(collection: CollectionEntry, id: PlainValue, alone: boolean): Plan | null {
  const start = pointKey(collection, id);
  if (start === null) return null;
  return {
    index: null,
    ranges: [{ start, end: start, shared: start.length }],
    reverse: false,
    sorted: true,
    repeats: false,
    exact: alone && collection.definition.longIds !== true,
    bounds: { points: [[id]], range: null },
    single: true,
    ...ALONE,
  };
}

/** Null for a filter that asks for anything else than equalities, lists and one `$or` of them. */
function readConditions({ conjuncts, alternatives, unplanned }: Filter): Conditions | null {
  const [branches = [], ...others] = alternatives;
  if (unplanned || others.length > 0 || branches.length > MAX_BRANCHES) return null;
  const own = conditionsOf(conjuncts);
  if (own === null) return null;
  const read: (readonly Condition[])[] = [];
  for (const branch of branches) {
    const conditions = readBranch(branch);
    if (conditions === null) return null;
    read.push([...own, ...conditions]);
  }
  return { own, branches: read };
}

function readBranch({ conjuncts, alternatives, unplanned }: Alternative): Condition[] | null {
  return unplanned || alternatives.length > 0 ? null : conditionsOf(conjuncts);
}

function conditionsOf(conjuncts: readonly Conjunct[]): Condition[] | null {
  const conditions: Condition[] = [];
  for (const { path, op, value } of conjuncts) {
    if (op === 'eq' && isPlainValue(value)) conditions.push({ path, value });
    else if (op === 'in' && isPlainList(value)) conditions.push({ path, values: value });
    else return null;
  }
  return conditions;
}

function isPlainList(value: unknown): value is readonly PlainValue[] {
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_VALUES && value.every(isPlainValue);
}

/**
 * Everything about the query that the choice of an index depends on. The values count where they can: null also finds
 * missing fields, and a partial index serves only certain values. Null when a shape does not say enough.
 */
function shapeOf(collection: CollectionEntry, { own, branches }: Conditions, sort: readonly SortPart[]): string | null {
  let shape = shapeOfAll(collection, own);
  for (const branch of branches) {
    const part = shapeOfAll(collection, branch.slice(own.length));
    if (part === null || shape === null) return null;
    shape += `|${part}`;
  }
  if (shape === null) return null;
  for (const { path, dir } of sort) shape += `${dir === 1 ? '+' : '-'}${path.length}:${path}`;
  return shape;
}

function shapeOfAll(collection: CollectionEntry, conditions: readonly Condition[]): string | null {
  let shape = '';
  for (const condition of conditions) {
    const { path } = condition;
    // With its length in front no name can be taken for the end of another one and what is said of its value.
    shape += `${path.length}:${path}`;
    const decides = collection.conditionFields.has(path);
    if ('values' in condition) {
      if (decides) return null;
      const { values } = condition;
      shape += `${values.length === 1 ? 'one' : 'in'}${values.includes(null) ? 'null' : ''}`;
      continue;
    }
    const { value } = condition;
    if (value === null) shape += 'null';
    else if (!decides) shape += '=';
    else if (typeof value === 'object') return null;
    else shape += `${typeof value} ${String(value).length}:${String(value)}`;
  }
  return shape;
}

/** Null when one of the plans is more than a prefix of equalities and lists on an index. */
function templateOf(plan: Plan, { own, branches }: Conditions): Template | null {
  if (plan.fallback !== null) return null;
  if (plan.branches === null) {
    const places = placesOf(plan, own);
    return places === null ? null : { plan, places: [places], last: null };
  }
  if (plan.branches.length !== branches.length) return null;
  const places: number[][] = [];
  for (const [n, branch] of plan.branches.entries()) {
    const found = branch.branches === null && branch.fallback === null ? placesOf(branch, branches[n]!) : null;
    if (found === null) return null;
    places.push(found);
  }
  return { plan, places, last: null };
}

/** Null also when the index would not serve text, or when there are several conditions on one of its fields. */
function placesOf({ index, bounds }: Plan, conditions: readonly Condition[]): number[] | null {
  if (index === null || index.isGeo || index.collation !== null || bounds.range !== null) return null;
  const places: number[] = [];
  for (let n = 0; n < bounds.points.length; n++) {
    const { path } = index.fields[n]!;
    const place = conditions.findIndex((condition) => condition.path === path);
    // Of several values for one field the planner may take any.
    if (conditions.some((condition, other) => condition.path === path && other !== place)) return null;
    places.push(place);
  }
  return places;
}

/** As fillAnew, which it need not ask twice in a row for the same. */
function fill(template: Template, conditions: Conditions): Plan | null {
  const { last } = template;
  if (last !== null && isSame(last.conditions, conditions)) return last.plan;
  const plan = fillAnew(template, conditions);
  const ranges = (plan?.branches ?? [plan]).reduce((sum, one) => sum + (one?.ranges.length ?? 0), 0);
  if (plan !== null && ranges >= MIN_KEPT_RANGES && ranges <= MAX_KEPT_RANGES) {
    if (last === null && kept.push(template) > MAX_KEPT) kept.shift()!.last = null;
    template.last = { conditions, plan };
  }
  return plan;
}

function isSame(a: Conditions, b: Conditions): boolean {
  return areSame(a.own, b.own) && a.branches.every((branch, n) => areSame(branch, b.branches[n]!));
}

/** Conditions of one shape, so on the same fields and of the same kinds. */
function areSame(a: readonly Condition[], b: readonly Condition[]): boolean {
  return a.every((condition, n) => {
    const other = b[n]!;
    if (!('values' in condition)) return !('values' in other) && isSameValue(condition.value, other.value);
    if (!('values' in other) || condition.values.length !== other.values.length) return false;
    return condition.values.every((value, at) => isSameValue(value, other.values[at]!));
  });
}

function isSameValue(a: PlainValue, b: PlainValue): boolean {
  if (a === b) return true;
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime();
  if (a instanceof ObjectId) return b instanceof ObjectId && a.equals(b);
  return false;
}

/** The remembered plan with the values of this query; null when one is too long for a key, which changes the plan. */
function fillAnew({ plan, places }: Template, { own, branches }: Conditions): Plan | null {
  if (plan.branches === null) return fillOne(plan, places[0]!, own);
  const filled: Plan[] = [];
  for (let n = 0; n < places.length; n++) {
    const branch = fillOne(plan.branches[n]!, places[n]!, branches[n]!);
    if (branch === null) return null;
    filled.push(branch);
  }
  return { ...plan, branches: filled };
}

function fillOne(plan: Plan, places: readonly number[], conditions: readonly Condition[]): Plan | null {
  const points: (readonly PlainValue[])[] = [];
  let single = true;
  for (const place of places) {
    const condition = conditions[place]!;
    const values = 'values' in condition ? condition.values : [condition.value];
    if (values.length !== 1) single = false;
    points.push(values);
  }
  const bounds = { points, range: null };
  const space = indexSpace(plan.index!);
  if (!single) {
    const { ranges, widened } = keyRanges(space, bounds);
    return widened ? null : { ...plan, ranges: plan.reverse ? ranges.reverse() : ranges, bounds };
  }
  const { kind, owner, fields, limit } = space;
  writer.reset(kind, owner);
  for (let n = 0; n < points.length; n++) writer.component(points[n]![0], fields[n]!.descending, limit);
  if (writer.cut) return null;
  const start = writer.take();
  const range: KeyRange = { start, end: writer.byte(AFTER).take(), shared: start.length };
  return { ...plan, ranges: [range], bounds };
}

/** Above every byte with which a component or an `_id` can begin. */
const AFTER = 0xff;
