import type { Conjunct } from '../query/match/match.js';
import type { Region } from '../query/geometry/cell.js';
import type { PrefixOperand } from '../query/match/regex-predicate.js';
import { compareValues } from '../query/values/compare.js';
import { comparableKind } from '../storage/encoding/comparable-kind.js';

/** One end of a range. */
export interface Bound {
  readonly value: unknown;
  readonly inclusive: boolean;
}

/** The conditions of a filter on one path, as far as an index can use them. */
export interface FieldBounds {
  /** The values the field must equal one of; null when there is no such condition. */
  points: readonly unknown[] | null;
  lower: Bound | null;
  upper: Bound | null;
  /** The beginning of the texts that a pattern can find. */
  prefix: PrefixOperand | null;
  /** Where the place has to be. */
  region: Region | null;
  /** The conditions cannot hold for a document in which the field is missing. */
  present: boolean;
  /** The conditions ask for documents in which the field is missing. */
  absent: boolean;
}

/** Collects the usable conditions of a filter's top-level conjunction by path. */
export function collectBounds(conjuncts: readonly Conjunct[]): Map<string, FieldBounds> {
  const bounds = new Map<string, FieldBounds>();
  for (const { path, op, value } of conjuncts) {
    let field = bounds.get(path);
    if (field === undefined) {
      field = { points: null, lower: null, upper: null, prefix: null, region: null, present: false, absent: false };
      bounds.set(path, field);
    }
    addCondition(field, op, value);
  }
  return bounds;
}

function addCondition(field: FieldBounds, op: Conjunct['op'], value: unknown): void {
  switch (op) {
    case 'eq':
      if (!isPoint(value)) return;
      // Of several equalities (they can all hold in an array) the first does; an equality is better than a list.
      if (field.points === null || field.points.length > 1) field.points = [value];
      if (value !== null) field.present = true;
      return;
    case 'in': {
      const values = value as readonly unknown[];
      if (!values.every(isPoint)) return;
      if (field.points === null || field.points.length > values.length) field.points = values;
      if (!values.includes(null)) field.present = true;
      return;
    }
    case 'gt':
    case 'gte':
      if (comparableKind(value) === null) return;
      field.lower = tighter(field.lower, { value, inclusive: op === 'gte' }, 1);
      field.present = true;
      return;
    case 'lt':
    case 'lte':
      if (comparableKind(value) === null) return;
      field.upper = tighter(field.upper, { value, inclusive: op === 'lte' }, -1);
      field.present = true;
      return;
    case 'prefix':
      field.prefix ??= value as PrefixOperand;
      field.present = true;
      return;
    case 'within':
      field.region ??= value as Region;
      field.present = true;
      return;
    case 'exists':
      if (value === true) field.present = true;
      else field.absent = true;
      return;
    case 'type':
      field.present = true;
  }
}

/**
 * The one of two bounds on the same side that leaves less. Each alone has to hold, so either would do; of different
 * types, between which nothing can be, the first.
 */
function tighter(known: Bound | null, other: Bound, side: 1 | -1): Bound {
  if (known === null) return other;
  if (comparableKind(known.value)![0] !== comparableKind(other.value)![0]) return known;
  const order = compareValues(other.value, known.value) * side;
  return order > 0 || (order === 0 && !other.inclusive) ? other : known;
}

/** Values whose equality means exactly one index key: no arrays (they match elements too), regular expressions, NaN. */
function isPoint(value: unknown): boolean {
  return value === null || comparableKind(value) !== null;
}
