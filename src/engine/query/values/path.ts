import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, refusal } from '../../errors.js';
import { fieldOf } from './value.js';

/** A dotted path, split once. */
export type Path = readonly string[];

const INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** Documents are not nested deeper. */
const MAX_PARTS = 200;

/** A path of more than 200 parts is refused (15). */
export function splitPath(path: string): Path {
  const parts = path.split('.');
  if (parts.length > MAX_PARTS) {
    throw refusal(CODES.Overflow, `a field path may have at most ${String(MAX_PARTS)} parts`);
  }
  return parts;
}

/** The array index a path part stands for, or -1. Leading zeros make it a name. */
export function indexOfPart(part: string): number {
  return INDEX.test(part) ? Number(part) : -1;
}

/**
 * Called with each value a path reaches (`undefined` = missing) and the index in the outermost array on the way; true
 * stops.
 */
export type VisitElement = (value: unknown, index: number) => boolean;

/**
 * Visits the values that a query path reaches: arrays on the way are entered element by element and, for a numeric
 * part, by position; at the end of the path an array's elements come before the array itself unless `leafArrays` is
 * false. An array on the way whose elements are no documents yields nothing, not even "missing".
 */
export function visitPath(doc: Doc, path: Path, leafArrays: boolean, visit: VisitElement): boolean {
  return visitFrom(doc, path, 0, leafArrays, -1, visit);
}

/** The parts of the path from which an array inside another one has been visited. */
type Seen = Map<readonly unknown[], Set<number>>;

function visitFrom(
  start: Doc,
  path: Path,
  from: number,
  leaf: boolean,
  outer: number,
  visit: VisitElement,
  seen?: Seen,
): boolean {
  let value: unknown = start;
  for (let at = from; at < path.length; at++) {
    if (Array.isArray(value)) return visitArray(value, path, at, leaf, outer, visit, seen);
    if (!isDocument(value)) return visit(undefined, outer);
    value = fieldOf(value, path[at]!);
  }
  return visitLeaf(value, leaf, outer, visit);
}

function visitLeaf(value: unknown, leafArrays: boolean, outer: number, visit: VisitElement): boolean {
  if (leafArrays && Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (visit(value[i], outer < 0 ? i : outer)) return true;
  }
  return visit(value, outer);
}

/** `path[at]` is the part that follows the array. */
function visitArray(
  array: readonly unknown[],
  path: Path,
  at: number,
  leaf: boolean,
  outer: number,
  visit: VisitElement,
  seen?: Seen,
): boolean {
  const position = indexOfPart(path[at]!);
  // A number is a position or a name, so that there may be very many ways to one array.
  const known = position >= 0 && outer >= 0 ? (seen ?? new Map<readonly unknown[], Set<number>>()) : seen;
  if (known !== undefined) {
    const parts = known.get(array) ?? new Set();
    if (parts.has(at)) return false;
    known.set(array, parts.add(at));
  }
  for (let i = 0; i < array.length; i++) {
    const item = array[i];
    const index = outer < 0 ? i : outer;
    if (isDocument(item) && visitFrom(item, path, at, leaf, index, visit, known)) return true;
    if (i !== position) continue;
    if (at === path.length - 1) {
      if (visit(item, index)) return true;
    } else if (Array.isArray(item)) {
      if (visitArray(item, path, at + 1, leaf, index, visit, known)) return true;
    } else if (isDocument(item) && visitFrom(item, path, at + 1, leaf, index, visit, known)) {
      return true;
    }
  }
  return false;
}

/**
 * The value of a path in an aggregation expression: arrays on the way become arrays of what their documents hold
 * (arrays directly within arrays hold none), numeric parts are names.
 */
export function readPath(value: unknown, path: Path, from = 0): unknown {
  let current = value;
  for (let at = from; at < path.length; at++) {
    if (Array.isArray(current)) {
      const found: unknown[] = [];
      for (const item of current) {
        if (!isDocument(item)) continue;
        const inner = readPath(item, path, at);
        if (inner !== undefined) found.push(inner);
      }
      return found;
    }
    if (!isDocument(current)) return undefined;
    current = fieldOf(current, path[at]!);
  }
  return current;
}
