import type { ObjectId } from 'bson';
import type { Collection } from '../../collections/collection.js';
import { findDate } from '../../collections/fields/find-date.js';
import { findObjectId } from '../../../platform/ids.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { scalarShape } from '../query/filter-value.js';
import { findField, isFieldPath } from '../store/find-field.js';
import { fieldNotReadable } from '../reply/conceal-fields.js';
import { badPipeline } from './pipeline-problems.js';

/**
 * The known shape of the documents at one place of a pipeline: a stage that gives a field a new meaning ends the
 * schema's word about it.
 */
export class DocumentShape {
  #collection: Collection | null;
  readonly #unseen: ReadonlySet<string>;
  readonly #redefined = new Set<string>();

  constructor({ collection, unseen }: { collection: Collection | null; unseen: ReadonlySet<string> }) {
    this.#collection = collection;
    this.#unseen = unseen;
  }

  /** A copy that changes separately. */
  copy(): DocumentShape {
    const copy = new DocumentShape({ collection: this.#collection, unseen: this.#unseen });
    for (const root of this.#redefined) copy.#redefined.add(root);
    return copy;
  }

  /** Notes that from here on the documents are not the stored ones. */
  replace(): void {
    this.#collection = null;
  }

  redefine(path: string): void {
    this.#redefined.add(path.split('.', 1)[0]!);
  }

  /** 400 FIELD_NOT_READABLE for a path to a stored field that the caller does not see in every document. */
  requireSeen(path: string): void {
    const root = path.split('.', 1)[0]!;
    if (this.#unseen.has(root) && this.#collection && !this.#redefined.has(root)) throw fieldNotReadable(root);
  }

  /** The path holds the stored identifier of a document. */
  isDocumentId(path: string): boolean {
    return path === '_id' && this.#collection !== null && !this.#redefined.has('_id');
  }

  isDate(path: string): boolean {
    if (!this.#collection || this.#redefined.has(path.split('.', 1)[0]!) || !isFieldPath(path)) return false;
    const target = findField(this.#collection, path);
    return target?.kind === 'declared' && target.firm && scalarShape(target.shape)?.type === 'Date';
  }
}

/** True for `_id` and for paths to the `_id` of something joined or embedded. */
export function endsInId(path: string): boolean {
  return path === '_id' || path.endsWith('._id');
}

/**
 * The values that a constant compared with a path stands for. JSON has neither identifiers nor dates: 24 hexadecimal
 * digits compared with a document's `_id` are its identifier, elsewhere at an `_id` either form; a date text compared
 * with a Date field is a date.
 */
export function literalForms(value: unknown, path: string | null, shape: DocumentShape): unknown[] {
  if (typeof value === 'string' && path !== null) {
    const id = endsInId(path) ? findObjectId(value) : null;
    if (id) return shape.isDocumentId(path) ? [id] : [id, value];
    if (shape.isDate(path)) return [findDate(value) ?? value];
  }
  return [readLiteral(value)];
}

/** A constant, with `{"$oid": hex}` and `{"$date": text}` read as what they write; any other operator in it is 400. */
export function readLiteral(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readLiteral);
  if (!isJsonObject(value)) return value;
  if (isWrapped(value)) return readWrapped(value);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key.startsWith('$')) throw badPipeline(`${JSON.stringify(key.slice(0, 60))} cannot stand inside a value`);
      return [key, readLiteral(inner)];
    }),
  );
}

/** `{"$oid": ...}` or `{"$date": ...}`. */
export function isWrapped(value: unknown): value is Record<string, unknown> {
  if (!isJsonObject(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 1 && (keys[0] === '$oid' || keys[0] === '$date');
}

export function readWrapped(value: Record<string, unknown>): ObjectId | Date {
  if ('$oid' in value) {
    const id = typeof value.$oid === 'string' ? findObjectId(value.$oid) : null;
    if (!id) throw badPipeline('$oid must be 24 hexadecimal digits');
    return id;
  }
  const date = typeof value.$date === 'string' ? findDate(value.$date) : null;
  if (!date) throw badPipeline('$date must be a date such as "2026-01-31" or "2026-01-31T12:00:00Z"');
  return date;
}
