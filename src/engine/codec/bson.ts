import { createRequire } from 'node:module';
import type * as Bson from 'bson';

// The driver loads the CommonJS build of `bson`; importing the ESM build here would give a second set of classes and
// `value instanceof ObjectId` would be false for what the in-process transport gives. All of the engine takes them from
// here.
const bson = createRequire(import.meta.url)('bson') as typeof Bson;

// The classes that are also named as types.
export type Decimal128 = Bson.Decimal128;
export type DBRef = Bson.DBRef;
export type Double = Bson.Double;
export type ObjectId = Bson.ObjectId;

export const {
  Binary,
  BSONRegExp,
  BSONSymbol,
  Code,
  DBRef,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
  calculateObjectSize,
} = bson;

/** The fields of the document that stands for a reference to another one. */
export function fieldsOfReference({ collection, oid, db, fields }: Bson.DBRef): Record<string, unknown> {
  return { $ref: collection, $id: oid, ...(db === undefined || db === '' ? {} : { $db: db }), ...fields };
}
