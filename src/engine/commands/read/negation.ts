import { type Doc, isDocument } from '../../codec/document.js';
import { isTruthy } from '../../query/values/value.js';

/** A filter with one negated condition: what it finds is what `all` finds without what `without` finds. */
export interface Negation {
  readonly all: Doc;
  readonly without: Doc;
}

/** Each operator that finds exactly what another one does not. */
const OPPOSITES: Readonly<Record<string, string>> = { $ne: '$eq', $nin: '$in' };

/**
 * Splits a filter of conditions joined by `$and`, one of which is `$ne`, `$nin` or `$exists`; null when none is, or
 * several are.
 */
export function readNegation(filter: Doc): Negation | null {
  const parts = joinedIn(filter);
  let negated: { at: number; opposite: Doc } | null = null;
  for (const [at, part] of parts.entries()) {
    const opposite = oppositeOf(part);
    if (opposite === null) continue;
    if (negated !== null) return null;
    negated = { at, opposite };
  }
  if (negated === null) return null;
  const { at, opposite } = negated;
  const others = parts.filter((_, n) => n !== at);
  return { all: joined(others), without: joined([...others, opposite]) };
}

/** A filter of all conditions. */
export function joined(parts: readonly Doc[]): Doc {
  return parts.length === 0 ? {} : parts.length === 1 ? parts[0]! : { $and: parts };
}

/** The conditions that a filter joins, by `$and` too. */
export function joinedIn(filter: Doc): Doc[] {
  return Object.keys(filter).flatMap((name): Doc[] => {
    const value = filter[name];
    if (name === '$and' && Array.isArray(value) && value.every(isDocument)) return value.flatMap(joinedIn);
    return [{ [name]: value }];
  });
}

function oppositeOf(part: Doc): Doc | null {
  const [path] = Object.keys(part) as [string];
  const condition = part[path];
  if (path.startsWith('$') || !isDocument(condition)) return null;
  const [operator, ...more] = Object.keys(condition);
  if (operator === undefined || more.length > 0) return null;
  if (operator === '$exists') return { [path]: { $exists: !isTruthy(condition[operator]) } };
  const opposite = Object.hasOwn(OPPOSITES, operator) ? OPPOSITES[operator] : undefined;
  return opposite === undefined ? null : { [path]: { [opposite]: condition[operator] } };
}
