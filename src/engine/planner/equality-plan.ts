import type { Equality, PlainValue } from '../query/match/equalities.js';
import type { SortPart } from '../query/sort.js';
import type { CollectionEntry } from '../storage/keys/index-definition.js';
import { DOCUMENT_SPACE } from '../storage/file/environment.js';
import { KeyWriter, MAX_ID_BYTES } from '../storage/encoding/key-encoding.js';
import { indexSpace } from './key-ranges.js';
import { ALONE, type Plan } from './plan.js';

const writer = new KeyWriter();

/** A remembered choice: how the plan of another query of the same shape was made, without its values. */
interface Template {
  readonly plan: Plan;
  /** For each leading field of the index, which of the filter's values it has to equal. */
  readonly places: readonly number[];
}

const MAX_TEMPLATES = 100;
const templates = new WeakMap<CollectionEntry, Map<string, Template>>();

/**
 * The plan for a filter that is nothing but equalities. One on `_id` leads to its document at once; any other shape of
 * fields and sort is planned by `choose` once and then filled with the values of each query, for as long as the
 * collection's definition stays what it is. A choice is `probed` when it hung on how frequent the values are.
 */
export function planEqualities(
  collection: CollectionEntry,
  equalities: readonly Equality[],
  sort: readonly SortPart[],
  choose: () => { plan: Plan; probed: boolean },
): Plan {
  const point = planPoint(collection, equalities);
  if (point !== null) return point;
  const shape = shapeOf(collection, equalities, sort);
  if (shape === null) return choose().plan;
  let known = templates.get(collection);
  if (known === undefined) templates.set(collection, (known = new Map<string, Template>()));
  const template = known.get(shape);
  if (template !== undefined) {
    const plan = fill(template, equalities);
    if (plan !== null) return plan;
  }
  const { plan, probed } = choose();
  if (template === undefined && !probed) {
    const made = templateOf(plan, equalities);
    if (known.size >= MAX_TEMPLATES) known.clear();
    // A value too long for a key would leave its mark on the plan.
    if (made !== null && fill(made, equalities) !== null) known.set(shape, made);
  }
  return plan;
}

/** The plan for an equality on `_id`; null when there is none or its value is too long for a key. */
function planPoint(collection: CollectionEntry, equalities: readonly Equality[]): Plan | null {
  for (const { path, value } of equalities) {
    if (path !== '_id') continue;
    const start = writer.reset(DOCUMENT_SPACE, collection.id).component(value, false, MAX_ID_BYTES).take();
    if (writer.cut) return null;
    return {
      index: null,
      ranges: [{ start, end: start, shared: start.length }],
      reverse: false,
      sorted: true,
      repeats: false,
      exact: equalities.length === 1 && collection.definition.longIds !== true,
      bounds: { points: [[value]], range: null },
      single: true,
      ...ALONE,
    };
  }
  return null;
}

/**
 * Everything about the query that the choice of an index depends on. The values count where they can: null also finds
 * missing fields, and a partial index serves only certain values. Null when a shape does not say enough.
 */
function shapeOf(
  collection: CollectionEntry,
  equalities: readonly Equality[],
  sort: readonly SortPart[],
): string | null {
  let shape = '';
  for (const { path, value } of equalities) {
    // With its length in front no name can be taken for the end of another one and what is said of its value.
    shape += `${path.length}:${path}`;
    if (value === null) shape += 'null';
    else if (!collection.conditionFields.has(path)) shape += '=';
    else if (typeof value === 'object') return null;
    else shape += `${typeof value} ${String(value).length}:${String(value)}`;
  }
  for (const { path, dir } of sort) shape += `${dir === 1 ? '+' : '-'}${path.length}:${path}`;
  return shape;
}

/** Null when the plan is more than a prefix of equalities on an index, or the index would not serve text. */
function templateOf(plan: Plan, equalities: readonly Equality[]): Template | null {
  const { index, bounds, ranges } = plan;
  if (
    index === null ||
    index.collation !== null ||
    plan.branches !== null ||
    plan.merges ||
    plan.fallback !== null ||
    bounds.range !== null ||
    ranges.length !== 1
  ) {
    return null;
  }
  const places: number[] = [];
  for (let n = 0; n < bounds.points.length; n++) {
    const { path } = index.fields[n]!;
    const place = equalities.findIndex((equality) => equality.path === path);
    // Of several values for one field the planner may take any.
    if (equalities.some((equality, other) => equality.path === path && other !== place)) return null;
    places.push(place);
  }
  return { plan, places };
}

/** The remembered plan with the values of this query; null when one is too long for a key, which changes the plan. */
function fill({ plan, places }: Template, equalities: readonly Equality[]): Plan | null {
  const index = plan.index!;
  const { kind, owner, fields, limit } = indexSpace(index);
  writer.reset(kind, owner);
  const points: PlainValue[][] = [];
  for (let n = 0; n < places.length; n++) {
    const { value } = equalities[places[n]!]!;
    points.push([value]);
    writer.component(value, fields[n]!.descending, limit);
  }
  if (writer.cut) return null;
  const start = writer.take();
  return {
    ...plan,
    ranges: [{ start, end: writer.byte(AFTER).take(), shared: start.length }],
    bounds: { points, range: null },
  };
}

/** Above every byte with which a component or an `_id` can begin. */
const AFTER = 0xff;
