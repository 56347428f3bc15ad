import { type Doc, isDocument } from '../codec/document.js';
import { badValue, refusal } from '../errors.js';
import type { Collation } from './collation/collation.js';
import { indexOfPart, type Path, splitPath } from './values/path.js';
import { compareValues } from './values/compare.js';
import { fieldOf, integerOf, numberOf } from './values/value.js';

export interface SortPart {
  readonly path: string;
  readonly dir: 1 | -1;
}

/** One value per part of a sort or index; `undefined` stands for an empty array, null for null and missing. */
export type KeyTuple = readonly unknown[];

/** A compiled sort. */
export interface Sort {
  compare(a: Doc, b: Doc): number;
  /** The tuple a document sorts by, text folded by the collation; compare two with `compareKeys`. */
  keysOf(doc: Doc): KeyTuple;
  compareKeys: (a: KeyTuple, b: KeyTuple) => number;
  readonly parts: readonly SortPart[];
  /** The top-level fields that the keys are made of. */
  readonly fields: ReadonlySet<string>;
}

const MAX_PARTS = 32;

/**
 * Compiles a sort document; directions other than 1 and -1, empty paths and more than 32 keys are refused. Without a
 * collation text is in the order of its code points.
 */
export function compileSort(spec: Doc, collation: Collation | null = null): Sort {
  const parts = Object.keys(spec).map((path): SortPart => ({ path, dir: directionOf(spec[path], path) }));
  if (parts.length > MAX_PARTS) throw badValue('too many compound keys');
  const paths = parts.map((part) => splitPath(part.path));
  const directions = parts.map((part) => part.dir);
  const compareKeys = (a: KeyTuple, b: KeyTuple): number => {
    for (let i = 0; i < directions.length; i++) {
      const order = compareValues(a[i], b[i]);
      if (order !== 0) return order * directions[i]!;
    }
    return 0;
  };
  const fold = (keys: KeyTuple): KeyTuple => (collation === null ? keys : keys.map((key) => collation.fold(key)));
  const keysOf = (doc: Doc): KeyTuple => {
    const flat = flatKeys(doc, paths);
    if (flat !== null) return fold(flat);
    let least: KeyTuple | undefined;
    for (const tuple of extractKeys(doc, paths, 2).map(fold)) {
      if (least === undefined || compareKeys(tuple, least) < 0) least = tuple;
    }
    return least!;
  };
  return {
    compare: (a, b) => compareKeys(keysOf(a), keysOf(b)),
    keysOf,
    compareKeys,
    parts,
    fields: new Set(paths.map((path) => path[0]!)),
  };
}

function directionOf(value: unknown, path: string): 1 | -1 {
  if (path === '' || splitPath(path).includes('')) {
    throw refusal(15998, 'FieldPath field names may not be empty strings.');
  }
  if (path.startsWith('$')) throw refusal(16410, "FieldPath field names may not start with '$'.");
  if (isDocument(value)) throw badValue('$meta sorts are not supported by this engine');
  const number = numberOf(value);
  if (number === null) throw refusal(15974, `Illegal key in $sort specification: ${path}`);
  const direction = integerOf(value) ?? Math.trunc(number);
  if (direction !== 1 && direction !== -1) {
    throw refusal(15975, '$sort key ordering must be 1 (for ascending) or -1 (for descending)');
  }
  return direction;
}

/** The key of a document in which no path meets an array; null when one does. */
function flatKeys(doc: Doc, paths: readonly Path[]): unknown[] | null {
  const keys: unknown[] = new Array(paths.length);
  for (let i = 0; i < paths.length; i++) {
    const path = paths[i]!;
    let value: unknown = doc;
    for (let at = 0; at < path.length; at++) {
      if (Array.isArray(value)) return null;
      if (!isDocument(value)) {
        value = undefined;
        break;
      }
      value = fieldOf(value, path[at]!);
    }
    if (Array.isArray(value)) return null;
    keys[i] = value === undefined ? null : value;
  }
  return keys;
}

interface Cursor {
  readonly value: unknown;
  readonly path: Path;
  readonly at: number;
}

/**
 * All key tuples of a document under the given paths, as an index holds them: an array contributes one tuple per
 * element (possibly the same one twice), an empty one `undefined`, a missing value null. Two paths that meet different
 * arrays are refused with `parallelCode` (171 for an index, 2 for a sort).
 */
export function extractKeys(doc: Doc, paths: readonly Path[], parallelCode = 171): KeyTuple[] {
  const flat = flatKeys(doc, paths);
  if (flat !== null) return [flat];
  const tuples: KeyTuple[] = [];
  expand(
    paths.map((path) => ({ value: doc, path, at: 0 })),
    tuples,
    parallelCode,
  );
  return tuples;
}

function expand(cursors: readonly Cursor[], tuples: KeyTuple[], parallelCode: number): void {
  const reached = cursors.map(descend);
  let array: readonly unknown[] | undefined;
  for (const { value } of reached) {
    if (!Array.isArray(value)) continue;
    if (array !== undefined && array !== value) {
      throw refusal(parallelCode, 'cannot sort or index by paths that meet parallel arrays');
    }
    array = value;
  }
  if (array === undefined) {
    tuples.push(reached.map((cursor) => (cursor.value === undefined ? null : unwrap(cursor.value))));
    return;
  }
  const all = array;
  const positions = reached.map((cursor) => positionIn(cursor, all));
  const spread = reached.some((cursor, i) => cursor.value === all && positions[i]! < 0);
  const placed = reached.map((cursor, i) =>
    positions[i]! < 0 ? cursor : { value: all[positions[i]!], path: cursor.path, at: cursor.at + 1 },
  );
  if (!spread) {
    expand(placed, tuples, parallelCode);
    return;
  }
  if (all.length === 0) {
    const ended = placed.map((cursor) => (cursor.value === all ? done(atEnd(cursor) ? EMPTY : null) : cursor));
    expand(ended, tuples, parallelCode);
    return;
  }
  for (const item of all) {
    const next = placed.map((cursor) => (cursor.value === all ? enter(cursor, item) : cursor));
    expand(next, tuples, parallelCode);
  }
}

/** Marks an array's element, or an empty array, as final, so that it is not expanded again. */
class Final {
  constructor(readonly value: unknown) {}
}

const EMPTY = new Final(undefined);

function unwrap(value: unknown): unknown {
  return value instanceof Final ? value.value : value;
}

function done(value: unknown): Cursor {
  return { value, path: [], at: 0 };
}

function atEnd(cursor: Cursor): boolean {
  return cursor.at === cursor.path.length;
}

/** Elements that are no documents have no fields: a path that goes on finds null in them. */
function enter(cursor: Cursor, item: unknown): Cursor {
  if (atEnd(cursor)) return done(new Final(item));
  return isDocument(item) ? { value: item, path: cursor.path, at: cursor.at } : done(null);
}

function positionIn(cursor: Cursor, array: readonly unknown[]): number {
  if (cursor.value !== array || atEnd(cursor)) return -1;
  const position = indexOfPart(cursor.path[cursor.at]!);
  return position >= 0 && position < array.length ? position : -1;
}

function descend(cursor: Cursor): Cursor {
  let { value, at } = cursor;
  while (at < cursor.path.length && isDocument(value)) value = fieldOf(value, cursor.path[at++]!);
  if (Array.isArray(value)) return { value, path: cursor.path, at };
  if (at < cursor.path.length && !(value instanceof Final)) value = undefined;
  return { value, path: cursor.path, at: cursor.path.length };
}
