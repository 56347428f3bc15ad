import type { ObjectId, Document } from 'bson';
import type { Collection } from '../../collections/collection.js';
import { findObjectId } from '../../../platform/ids.js';
import { findDate, isJsonObject } from '../../collections/fields/field-type.js';
import { scalarShape } from '../query/filter-value.js';
import { findField, isFieldPath } from '../store/find-field.js';
import { fieldNotReadable } from '../reply/redact-fields.js';
import { invalid, type AppError } from '../../../errors.js';
import { BLOCKED } from './expression-operators.js';

/** 400 INVALID_PIPELINE. */
export function badPipeline(message: string): AppError {
  return invalid('INVALID_PIPELINE', message);
}

/** Conditions of MongoDB that people look for, and what there is instead. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['$near', 'begin the pipeline with $geoNear'],
  ['$nearSphere', 'begin the pipeline with $geoNear'],
  ['$within', 'write $geoWithin'],
  ['$text', 'there is no text search; $regex finds what begins with or contains a word'],
]);

/**
 * The refusal of a stage or operator that is not on a list: BLOCKED_STAGE where it is known to be dangerous, else
 * INVALID_PIPELINE.
 */
export function refusedName(name: string, what: string): AppError {
  const instead = INSTEAD.get(name);
  if (instead !== undefined) return badPipeline(`${name} is not available here: ${instead}`);
  return BLOCKED.has(name) || name.startsWith('$_internal')
    ? invalid('BLOCKED_STAGE', `${name.slice(0, 60)} is not allowed in a pipeline`)
    : badPipeline(`Unknown ${what} ${JSON.stringify(name.slice(0, 60))}`);
}

/** An object with at least one key; 400 otherwise. `what` begins the message. */
export function requireObject(value: unknown, what: string): Record<string, unknown> {
  if (!isJsonObject(value) || Object.keys(value).length === 0) throw badPipeline(`${what} needs an object`);
  return value;
}

export function requireText(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '') throw badPipeline(`${what} must be a text`);
  return value;
}

/** A path as it stands in a specification: without `$`, without empty parts. */
export function requirePath(value: unknown, what: string): string {
  const path = requireText(value, what);
  // The driver's library would take a document with a field `_bsontype` for one of its own types.
  if (path.split('.').some((part) => part === '' || part.startsWith('$') || part === '_bsontype')) {
    throw badPipeline(`${what}: ${JSON.stringify(path.slice(0, 60))} is not a field path`);
  }
  return path;
}

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

/** A collection that a pipeline reads: where its documents are stored, and which of them the caller may see. */
export interface PipelineSource {
  collection: Collection;
  storedName: string;
  /** Holds for the documents that the caller may read; always joined in, never left to the client. */
  visible: Document;
  /** Whether rules keep documents from the caller. */
  isRestricted: boolean;
  /** Fields that the caller does not see in every document: the pipeline neither names nor hands on any of them. */
  unseen: ReadonlySet<string>;
}

/** The surroundings in which a stage is checked. */
export interface PipelineScope {
  shape: DocumentShape;
  /** A joined collection by the name that clients use; throws 400 or 404. Counts against the limits of joins. */
  join(name: unknown, stage: string): PipelineSource;
  /** A pipeline over a joined collection, restricted to what is visible in it. */
  joined(stages: unknown, source: PipelineSource, stage: string): Document[];
  /** A pipeline over the documents in hand. */
  nested(stages: unknown, stage: string): Document[];
}

/** Returns the stages that may run instead of one stage of the client. */
export type StageGuard = (specification: unknown, scope: PipelineScope) => Document[];
