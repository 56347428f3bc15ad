import { EJSON } from 'bson';
import { type Doc, isDocument, setField } from '../../codec/document.js';
import { toDouble } from '../../query/values/value.js';

/** From the driver's classes to the engine's own representation of numbers. */
export function fromBson(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  if (Array.isArray(value)) return value.map(fromBson);
  if (isDocument(value)) {
    const doc: Doc = {};
    for (const name of Object.keys(value)) setField(doc, name, fromBson(value[name]));
    return doc;
  }
  const tagged = value as { _bsontype: string; value: number; toBigInt(): bigint };
  switch (tagged._bsontype) {
    case 'Int32':
      return tagged.value;
    case 'Double':
      return toDouble(tagged.value);
    case 'Long':
      return tagged.toBigInt();
    default:
      return value;
  }
}

/** Reads canonical Extended JSON into the engine's representation. */
export function parseValues(text: string): unknown {
  return fromBson(EJSON.parse(text, { relaxed: false }));
}
