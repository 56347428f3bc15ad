import type { Conjunct } from '../query/match/match.js';
import { compareValues, equalValues } from '../query/values/compare.js';
import { typeOf } from '../query/values/value.js';
import { comparableKind } from '../storage/encoding/comparable-kind.js';

/**
 * True when every document that satisfies the filter's conjunction also satisfies the condition of a partial index, so
 * that the index holds all answers. Says false whenever it is not certain.
 */
export function impliesAll(conjuncts: readonly Conjunct[], condition: readonly Conjunct[]): boolean {
  return condition.every((wanted) => conjuncts.some((known) => known.path === wanted.path && implies(known, wanted)));
}

/** True when what satisfies `known` also satisfies `wanted`, a condition on the same path. */
export function implies(known: Conjunct, wanted: Conjunct): boolean {
  if (known.op === 'in') {
    const values = known.value as readonly unknown[];
    return values.every((value) => valueSatisfies(value, wanted)) || sameList(known, wanted);
  }
  if (known.op === 'eq') return valueSatisfies(known.value, wanted);
  switch (wanted.op) {
    case 'exists':
      return (
        wanted.value === true &&
        (known.op === 'exists' ? known.value === true : known.op === 'prefix' || isRange(known))
      );
    case 'type':
      return known.op === 'type' && equalValues(known.value, wanted.value);
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return rangeImplies(known, wanted);
    default:
      return false;
  }
}

function sameList(known: Conjunct, wanted: Conjunct): boolean {
  return wanted.op === 'in' && equalValues(known.value, wanted.value);
}

function isRange(conjunct: Conjunct): boolean {
  return ['gt', 'gte', 'lt', 'lte'].includes(conjunct.op) && comparableKind(conjunct.value) !== null;
}

function rangeImplies(known: Conjunct, wanted: Conjunct): boolean {
  if (!isRange(known) || !sameKind(known.value, wanted.value)) return false;
  if (known.op[0] !== wanted.op[0]) return false;
  const order = compareValues(known.value, wanted.value);
  if (order === 0) return wanted.op.length === 3 || known.op.length === 2;
  return wanted.op[0] === 'g' ? order > 0 : order < 0;
}

function sameKind(a: unknown, b: unknown): boolean {
  const first = comparableKind(a);
  const second = comparableKind(b);
  return first !== null && second !== null && first[0] === second[0];
}

function valueSatisfies(value: unknown, wanted: Conjunct): boolean {
  // An equality with null also finds missing fields, one with an array also finds its elements: nothing is certain.
  if (value === null || comparableKind(value) === null) return false;
  switch (wanted.op) {
    case 'eq':
      return equalValues(value, wanted.value);
    case 'in':
      return (wanted.value as readonly unknown[]).some((item) => equalValues(value, item));
    case 'exists':
      return wanted.value === true;
    case 'type': {
      // Numbers of different types are equal, so a number says nothing about the stored type.
      const names = Array.isArray(wanted.value) ? (wanted.value as readonly unknown[]) : [wanted.value];
      return typeof value !== 'number' && typeof value !== 'bigint' && names.includes(typeOf(value));
    }
    default: {
      if (!sameKind(value, wanted.value)) return false;
      const order = compareValues(value, wanted.value);
      if (order === 0) return wanted.op.length === 3;
      return wanted.op[0] === 'g' ? order > 0 : order < 0;
    }
  }
}
