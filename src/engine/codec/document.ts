import { CODES, refusal } from '../errors.js';

/**
 * A document inside the engine: a plain object whose keys are data, `__proto__` included (see `setField`). Values are
 * as `src/engine/README.md` lists them, a missing field is `undefined`.
 */
export type Doc = Record<string, unknown>;

/**
 * Sets a field as data: `__proto__` becomes an own property instead of changing the prototype. `_bsontype` is refused
 * (52): the driver's library and ours would take the document for a value of that type, and clients choose names while
 * an expression runs (`$arrayToObject`).
 */
export function setField(doc: Doc, field: string, value: unknown): void {
  if (field === '_bsontype') throw refusal(CODES.DollarPrefixedFieldName, 'A field must not be named _bsontype');
  if (field === '__proto__') {
    Object.defineProperty(doc, field, { value, writable: true, enumerable: true, configurable: true });
  } else {
    doc[field] = value;
  }
}

/** True for embedded documents: neither arrays, dates nor the classes of `bson`. A field `_bsontype` is data. */
export function isDocument(value: unknown): value is Doc {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  if (Array.isArray(value) || value instanceof Date) return false;
  return typeof (value as { _bsontype?: unknown })._bsontype !== 'string';
}

/** The `_bsontype` of a value of one of the classes of `bson`, else undefined. */
export function bsonType(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || isDocument(value)) return undefined;
  return (value as { _bsontype?: string })._bsontype;
}

/** A document in its stored form, put into replies as it is. */
export class RawDocument {
  readonly _bsontype = 'RawDocument';

  constructor(readonly bytes: Buffer) {}
}

/** One document of a result: as stored, or computed. */
export type Row = RawDocument | Doc;
