import type { BSONRegExp, BSONSymbol, DBRef, Double, Int32, Long } from 'bson';
import { BsonValueError } from './encode.js';
import * as bson from './bson.js';
import { promoteLong } from './decode.js';
import { bsonType, type Doc, setField } from './document.js';

const MAX_DEPTH = 200;
const MIN_INT32 = -0x80000000;
const MAX_INT32 = 0x7fffffff;

/** How the driver's option of that name treats fields whose value is `undefined`: left out, or null. */
export interface AppValueOptions {
  ignoreUndefined: boolean;
}

const KEEP_UNDEFINED: AppValueOptions = { ignoreUndefined: false };

/**
 * Turns a value of the application (filter, update, pipeline) into the engine's representation with the driver's rules:
 * Long -> bigint, RegExp -> BSONRegExp, DBRef -> its document, `undefined` -> null, functions are dropped. Always a
 * copy.
 */
export function fromApp(value: unknown, options: AppValueOptions = KEEP_UNDEFINED, depth = 0): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'bigint':
      return BigInt.asIntN(64, value);
    case 'number':
      return Object.is(value, -0) ? new bson.Double(-0) : value;
    case 'object':
      return value === null ? null : fromAppObject(value, options, depth);
    default:
      return null;
  }
}

function fromAppObject(value: object, options: AppValueOptions, depth: number): unknown {
  if (depth > MAX_DEPTH) throw new BsonValueError(`documents are cyclic or nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return value.map((item) => fromApp(item, options, depth + 1));
  if (value instanceof Date) return value;
  const type = (value as { _bsontype?: unknown })._bsontype;
  switch (type) {
    case undefined:
      break;
    case 'Long':
      return (value as Long).toBigInt();
    case 'Int32':
      return (value as Int32).value;
    case 'Double': {
      const number = (value as Double).value;
      return readsAsInt32(number) || Object.is(number, -0) ? new bson.Double(number) : number;
    }
    case 'DBRef':
      return fromAppFields(bson.fieldsOfReference(value as DBRef), options, depth);
    default:
      return value;
  }
  if (value instanceof Uint8Array) return new bson.Binary(value);
  if (value instanceof RegExp) {
    const options = (value.ignoreCase ? 'i' : '') + (value.multiline ? 'm' : '') + (value.global ? 's' : '');
    return new bson.BSONRegExp(value.source, options);
  }
  const convert = (value as { toBSON?: unknown }).toBSON;
  if (typeof convert === 'function') return fromApp(convert.call(value), options, depth + 1);
  return fromAppFields(value instanceof Map ? (Object.fromEntries(value) as Doc) : (value as Doc), options, depth);
}

function fromAppFields(doc: Doc, options: AppValueOptions, depth: number): Doc {
  const result: Doc = {};
  for (const name of Object.keys(doc)) {
    const value = doc[name];
    if (typeof value === 'function' || typeof value === 'symbol') continue;
    if (value === undefined && options.ignoreUndefined) continue;
    setField(result, name, fromApp(value, options, depth + 1));
  }
  return result;
}

/** Turns a document of the application into the engine's representation; see fromApp. */
export function docFromApp(doc: object, options?: AppValueOptions): Doc {
  return fromApp(doc, options) as Doc;
}

/** Turns an engine value into what the driver would have returned: bigint -> number or Long, Double -> number. */
export function toApp(value: unknown): unknown {
  if (typeof value === 'bigint') return promoteLong(value);
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  if (Array.isArray(value)) return value.map(toApp);
  switch (bsonType(value)) {
    case undefined: {
      const result: Doc = {};
      const doc = value as Doc;
      for (const name of Object.keys(doc)) setField(result, name, toApp(doc[name]));
      return result;
    }
    case 'Double':
      return (value as Double).value;
    case 'BSONSymbol':
      return (value as BSONSymbol).value;
    case 'BSONRegExp': {
      const { pattern, options } = value as BSONRegExp;
      let flags = '';
      for (const option of options) flags += option === 's' ? 'g' : option === 'i' || option === 'm' ? option : '';
      return new RegExp(pattern, flags);
    }
    default:
      return value;
  }
}

function readsAsInt32(number: number): boolean {
  return Number.isInteger(number) && number >= MIN_INT32 && number <= MAX_INT32;
}
