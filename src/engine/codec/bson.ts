import { createRequire } from 'node:module';
import type * as Bson from 'bson';

// The driver loads the CommonJS build of `bson`; importing the ESM build here would give a second set of classes and
// `value instanceof ObjectId` would be false for documents read through the in-process door.
const bson = createRequire(import.meta.url)('bson') as typeof Bson;

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
} = bson;
