import { bsonType, isDocument } from '../../codec/document.js';
import { CODES, EngineError } from '../../errors.js';

export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;

/** Throws 10334 for a document that is too large. */
export function checkSize(bytes: Buffer): void {
  if (bytes.length > MAX_DOCUMENT_BYTES) {
    throw new EngineError(
      CODES.BSONObjectTooLarge,
      `BSONObj size: ${bytes.length} is invalid. Size must be between 0 and 16793600(16MB)`,
    );
  }
}

/** How large an update may make a document of a collection whose name has the prefix. */
export interface GrowthBound {
  prefix: string;
  bytes: number;
  /** Top-level fields of the server's own: an update of these alone is not bounded. */
  exempt: ReadonlySet<string>;
}

/**
 * Throws 10334 for a document that has grown beyond the bound; one that was larger may stay so, or shrink. `touched`
 * are the only top-level fields that may differ, null when any may.
 */
export function checkGrowth(
  ns: string,
  before: number,
  after: number,
  touched: ReadonlySet<string> | null,
  bound: GrowthBound | null,
): void {
  if (bound === null || after <= bound.bytes || after <= before) return;
  if (touched !== null && [...touched].every((field) => bound.exempt.has(field))) return;
  if (!ns.slice(ns.indexOf('.') + 1).startsWith(bound.prefix)) return;
  throw new EngineError(CODES.BSONObjectTooLarge, `An update may not make a document larger than ${bound.bytes} bytes`);
}

/** Throws 52 or 53 for what cannot be an `_id`. */
export function checkId(id: unknown): void {
  if (Array.isArray(id)) throw new EngineError(CODES.InvalidIdField, "The '_id' value cannot be of type array");
  if (isDocument(id)) {
    for (const name of Object.keys(id)) {
      if (name.startsWith('$')) {
        throw new EngineError(CODES.DollarPrefixedFieldName, `_id fields may not contain '$'-prefixed fields: ${name}`);
      }
    }
    return;
  }
  if (bsonType(id) === 'BSONRegExp') {
    throw new EngineError(CODES.InvalidIdField, "The '_id' value cannot be of type regex");
  }
  if (id === undefined) throw new EngineError(CODES.InvalidIdField, "The '_id' value cannot be missing");
}

/** True if an earlier document of the same insert has the key; it is this one's from now on. */
export function isTaken(key: Buffer, taken: Set<string> | undefined): boolean {
  if (taken === undefined) return false;
  const text = key.latin1Slice();
  if (taken.has(text)) return true;
  taken.add(text);
  return false;
}
