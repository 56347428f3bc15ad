import { ObjectId, type Document } from 'bson';
import { findObjectId, isObjectId } from '../../../platform/ids.js';
import { type CallerSet, ID_PATH, type Literal } from '../../collections/rules/rule.js';
import { isComparable, type Pins } from './compile-rule.js';

/** What all documents hold that meet the conditions: a path is pinned where one of them asks for one value. */
export function pinsOf(conditions: readonly Document[], paths: Iterable<string>): Pins {
  const pins = new Map<string, Literal | null>();
  for (const path of paths) {
    for (const condition of conditions) {
      const value = literalOf(equalTo(condition, storedPath(path)));
      if (value !== undefined) pins.set(path, value);
    }
  }
  return pins;
}

/** What a document holds at the paths. */
export function pinsOfDocument(document: Document, paths: Iterable<string>): Pins {
  const pins = new Map<string, Literal | null>();
  for (const path of paths) pins.set(path, literalOf(valueAt(document, storedPath(path))) ?? null);
  return pins;
}

/** Conditions that a document meets as long as it holds the same at the paths. */
export function heldBy(document: Document, paths: Iterable<string>): Document[] {
  return [...paths].map((path) => ({ [storedPath(path)]: { $eq: valueAt(document, storedPath(path)) ?? null } }));
}

/**
 * Holds at the paths what no document holds: asked about in the place of one that is not there, so that this takes as
 * long as for one that the caller may not read.
 */
export function standIn(paths: Iterable<string>): Document {
  const held: Document = {};
  for (const path of paths) {
    const parts = storedPath(path).split('.');
    const last = parts.pop()!;
    const holder = parts.reduce((within, part) => (within[part] ??= {}) as Document, held);
    holder[last] = path === ID_PATH ? new ObjectId() : new ObjectId().toHexString();
  }
  return held;
}

/** The path of the stored document that a rule means. */
export function storedPath(path: string): string {
  return path === ID_PATH ? '_id' : path;
}

/** What documents of a set meet that hold one of the values there; null where none can. */
export function holdsAny({ path }: Pick<CallerSet, 'path'>, values: readonly Literal[]): Document | null {
  const wanted = path === ID_PATH ? values.flatMap((value) => findObjectId(String(value)) ?? []) : values;
  if (wanted.length === 0) return null;
  return { [storedPath(path)]: wanted.length === 1 ? wanted[0] : { $in: wanted } };
}

function literalOf(value: unknown): Literal | null | undefined {
  if (isObjectId(value)) return value.toHexString();
  return value === null || isComparable(value) ? value : undefined;
}

function equalTo(condition: Document, path: string): unknown {
  const asked: unknown = Object.hasOwn(condition, path) ? condition[path] : undefined;
  if (typeof asked !== 'object' || asked === null || !Object.hasOwn(asked, '$eq')) return asked;
  return (asked as { $eq: unknown }).$eq;
}

function valueAt(document: unknown, path: string): unknown {
  let value = document;
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

/** What rules can compare of a document at a path, through lists on the way. */
export function valuesAt(value: unknown, path: readonly string[]): Literal[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, path));
  const [part, ...rest] = path;
  if (part !== undefined) {
    const holder = value as Record<string, unknown> | null | undefined;
    return typeof holder === 'object' && holder !== null && Object.hasOwn(holder, part)
      ? valuesAt(holder[part], rest)
      : [];
  }
  if (isObjectId(value)) return [value.toHexString()];
  return isComparable(value) ? [value] : [];
}
