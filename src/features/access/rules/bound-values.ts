import { deserialize, ObjectId, type Document } from 'bson';
import { findObjectId, isObjectId } from '../../../platform/ids.js';
import { type CallerSet, ID_PATH, type Literal } from '../../collections/rules/rule.js';
import { isComparable, type BoundValues } from './compile-rule.js';

/** The values that the conditions fix: a path is bound if a condition requires it to equal one value. */
export function boundValuesOf(conditions: readonly Document[], paths: Iterable<string>): BoundValues {
  const boundValues = new Map<string, Literal | null>();
  for (const path of paths) {
    for (const condition of conditions) {
      const value = literalOf(equalTo(condition, storedPath(path)));
      if (value !== undefined) boundValues.set(path, value);
    }
  }
  return boundValues;
}

/** The document's values at the paths. */
export function boundValuesOfDocument(document: Document, paths: Iterable<string>): BoundValues {
  const boundValues = new Map<string, Literal | null>();
  for (const path of paths) boundValues.set(path, literalOf(valueAt(document, storedPath(path))) ?? null);
  return boundValues;
}

/** Conditions that hold as long as the document's values at the paths do not change. */
export function preconditionsOf(document: Document, paths: Iterable<string>): Document[] {
  return [...paths].map((path) => ({ [storedPath(path)]: { $eq: valueAt(document, storedPath(path)) ?? null } }));
}

/**
 * A document with unique values at the paths. Rules are evaluated for it when the requested document does not exist, so
 * that this takes as long as for a document that the caller may not read.
 */
export function placeholderDocument(paths: Iterable<string>): Document {
  const held: Document = {};
  for (const path of paths) {
    const parts = storedPath(path).split('.');
    const last = parts.pop()!;
    const holder = parts.reduce((within, part) => (within[part] ??= {}) as Document, held);
    holder[last] = path === ID_PATH ? new ObjectId() : new ObjectId().toHexString();
  }
  return held;
}

/** The path in the stored document for a path of a rule. */
export function storedPath(path: string): string {
  return path === ID_PATH ? '_id' : path;
}

/** The filter for documents of a set that contain one of the values; null if none can. */
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

/** A change of a document in a log: how it is now, and how it was before. */
interface LoggedChange {
  document: Buffer | null;
  earlier?: readonly { bytes: Buffer; isPartial: boolean }[] | null;
}

/** The values that changed documents hold, or held, at paths of rules; null where a log does not know enough. */
export function valuesOfChanges(changes: readonly LoggedChange[], paths: readonly string[]): Set<Literal> | null {
  const found = new Set<Literal>();
  for (const { document, earlier } of changes) {
    const states = [...(earlier ?? []), ...(document ? [{ bytes: document, isPartial: false }] : [])];
    for (const { bytes, isPartial } of states) {
      const fields = deserialize(bytes, { validation: { utf8: false } });
      for (const path of paths.map(storedPath)) {
        if (isPartial && !Object.hasOwn(fields, path.split('.')[0]!)) return null;
        for (const value of valuesAt(fields, path.split('.'))) found.add(value);
      }
    }
  }
  return found;
}

/** The comparable values at a path, including those inside lists. */
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
