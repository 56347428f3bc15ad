/** A document inside the engine; values are as `src/engine/README.md` lists them, a missing field is `undefined`. */
export interface Doc {
  [field: string]: unknown;
}

/** Sets a field as data: `__proto__` becomes an own property instead of changing the prototype. */
export function setField(doc: Doc, field: string, value: unknown): void {
  if (field === '__proto__') {
    Object.defineProperty(doc, field, { value, writable: true, enumerable: true, configurable: true });
  } else {
    doc[field] = value;
  }
}

/** True for embedded documents: neither arrays, dates nor the classes of `bson`. */
export function isDocument(value: unknown): value is Doc {
  if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Date) return false;
  return !('_bsontype' in value);
}

/** The `_bsontype` of a value of one of the classes of `bson`, else undefined. */
export function bsonType(value: unknown): string | undefined {
  return value !== null && typeof value === 'object'
    ? ((value as { _bsontype?: unknown })._bsontype as string | undefined)
    : undefined;
}

/** A document in its stored form, put into replies as it is. */
export class RawDocument {
  readonly _bsontype = 'RawDocument';

  constructor(readonly bytes: Buffer) {}
}

/** One document of a result: as stored, or computed. */
export type Row = RawDocument | Doc;
