import type { Binary, BSONRegExp, Code, DBRef, Decimal128, Double, Int32, Long, Timestamp } from 'bson';
import { fieldsOfReference } from './bson.js';
import { type Doc, isDocument, RawDocument } from './document.js';

/** Thrown for a value that has no BSON form, a cyclic document, or one nested too deeply. */
export class BsonValueError extends Error {}

const MAX_DEPTH = 200;
const MIN_INT32 = -0x80000000;
const MAX_INT32 = 0x7fffffff;
const FIRST_CAPACITY = 0x8000;
const KEPT_CAPACITY = 0x100000;

const float = new Float64Array(1);
const floatBytes = new Uint8Array(float.buffer);

let scratch = Buffer.allocUnsafeSlow(FIRST_CAPACITY);
let at = 0;
let depth = 0;
let skipUndefined = false;

function reserve(length: number): void {
  if (at + length <= scratch.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(scratch.length * 2, at + length));
  scratch.copy(larger, 0, 0, at);
  scratch = larger;
}

function putInt32(value: number): void {
  reserve(4);
  putInt32At(value, at);
  at += 4;
}

function putInt32At(value: number, where: number): void {
  scratch[where] = value;
  scratch[where + 1] = value >> 8;
  scratch[where + 2] = value >> 16;
  scratch[where + 3] = value >> 24;
}

function putDouble(value: number): void {
  float[0] = value;
  reserve(8);
  scratch.set(floatBytes, at);
  at += 8;
}

function putInt64(value: bigint): void {
  reserve(8);
  scratch.writeBigInt64LE(BigInt.asIntN(64, value), at);
  at += 8;
}

/** An integral number as int64, without the detour through a bigint. */
function putTime(time: number): void {
  reserve(8);
  const high = Math.floor(time / 0x100000000);
  putInt32At(time - high * 0x100000000, at);
  putInt32At(high, at + 4);
  at += 8;
}

function putBytes(bytes: Uint8Array): void {
  reserve(bytes.length);
  scratch.set(bytes, at);
  at += bytes.length;
}

/** A value may claim a class that it is not of: other lengths would make bytes that nobody can read. */
function putExactly(length: number, bytes: Uint8Array): void {
  if (bytes.length !== length) throw new BsonValueError(`a value that should have ${length} bytes has not`);
  putBytes(bytes);
}

/** Text without a length in front; returns its length in bytes. */
function putRawText(text: string): number {
  const length = text.length;
  reserve(length * 3 + 1);
  if (length < 24) {
    let to = at;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return putUtf8(text);
      scratch[to++] = code;
    }
    at = to;
    return length;
  }
  return putUtf8(text);
}

function putUtf8(text: string): number {
  const length = scratch.utf8Write(text, at);
  at += length;
  return length;
}

function putName(name: string): void {
  if (name.includes('\0')) throw new BsonValueError('field names must not contain null bytes');
  putRawText(name);
  scratch[at++] = 0;
}

function putText(text: string): void {
  reserve(4);
  const lengthAt = at;
  at += 4;
  const length = putRawText(text);
  scratch[at++] = 0;
  putInt32At(length + 1, lengthAt);
}

/** Writes type, name and value; a function or a JavaScript symbol is left out, as the driver does. */
function putElement(name: string, value: unknown, inArray: boolean): void {
  switch (typeof value) {
    case 'string':
      putHead(0x02, name);
      putText(value);
      return;
    case 'number':
      putNumber(name, value);
      return;
    case 'boolean':
      putHead(0x08, name);
      reserve(1);
      scratch[at++] = value ? 1 : 0;
      return;
    case 'bigint':
      putHead(0x12, name);
      putInt64(value);
      return;
    case 'undefined':
      if (inArray || !skipUndefined) putHead(0x0a, name);
      return;
    case 'object':
      if (value === null) putHead(0x0a, name);
      else putObject(name, value);
      return;
    default:
      if (inArray) putHead(0x0a, name);
  }
}

function putHead(type: number, name: string): void {
  reserve(1);
  scratch[at++] = type;
  putName(name);
}

function putNumber(name: string, value: number): void {
  if (Number.isInteger(value) && value >= MIN_INT32 && value <= MAX_INT32 && !Object.is(value, -0)) {
    putHead(0x10, name);
    putInt32(value);
  } else {
    putHead(0x01, name);
    putDouble(value);
  }
}

function putObject(name: string, value: object): void {
  const type = (value as { _bsontype?: unknown })._bsontype;
  if (type !== undefined && !isDocument(value)) {
    putBsonClass(name, value, type);
  } else if (Array.isArray(value)) {
    putHead(0x04, name);
    putArray(value);
  } else if (value instanceof Date) {
    putHead(0x09, name);
    const time = value.getTime();
    putTime(Number.isNaN(time) ? 0 : time);
  } else if (value instanceof Uint8Array) {
    putHead(0x05, name);
    putBinary(value, 0);
  } else if (value instanceof RegExp) {
    putHead(0x0b, name);
    putName(value.source);
    putName((value.ignoreCase ? 'i' : '') + (value.multiline ? 'm' : '') + (value.global ? 's' : ''));
  } else if (typeof (value as { toBSON?: unknown }).toBSON === 'function') {
    putElement(name, (value as { toBSON(): unknown }).toBSON(), false);
  } else {
    putHead(0x03, name);
    putDocument(value instanceof Map ? (Object.fromEntries(value) as Doc) : (value as Doc));
  }
}

function putBsonClass(name: string, value: object, type: unknown): void {
  switch (type) {
    case 'ObjectId':
      putHead(0x07, name);
      putExactly(12, (value as { id: Uint8Array }).id);
      return;
    case 'Double':
      putHead(0x01, name);
      putDouble((value as Double).value);
      return;
    case 'Int32':
      putHead(0x10, name);
      putInt32((value as Int32).value);
      return;
    case 'Long':
      putHead(0x12, name);
      putInt64((value as Long).toBigInt());
      return;
    case 'Timestamp':
      putHead(0x11, name);
      putInt64((value as Timestamp).toBigInt());
      return;
    case 'Decimal128':
      putHead(0x13, name);
      putExactly(16, (value as Decimal128).bytes);
      return;
    case 'Binary': {
      const binary = value as Binary;
      putHead(0x05, name);
      putBinary(binary.buffer.subarray(0, binary.position), binary.sub_type);
      return;
    }
    case 'BSONRegExp': {
      const regex = value as BSONRegExp;
      putHead(0x0b, name);
      putName(regex.pattern);
      putName([...regex.options].sort().join(''));
      return;
    }
    case 'BSONSymbol':
      putHead(0x0e, name);
      putText((value as { value: string }).value);
      return;
    case 'MinKey':
      putHead(0xff, name);
      return;
    case 'MaxKey':
      putHead(0x7f, name);
      return;
    case 'Code':
      putCode(name, value as Code);
      return;
    case 'DBRef':
      putHead(0x03, name);
      putDocument(fieldsOfReference(value as DBRef));
      return;
    default:
      if (value instanceof RawDocument) {
        putHead(0x03, name);
        putBytes(value.bytes);
        return;
      }
      throw new BsonValueError(`unknown _bsontype ${String(type)}`);
  }
}

function putBinary(content: Uint8Array, subType: number): void {
  const inner = subType === 2 ? 4 : 0;
  putInt32(content.length + inner);
  reserve(1);
  scratch[at++] = subType;
  if (inner > 0) putInt32(content.length);
  putBytes(content);
}

function putCode(name: string, value: Code): void {
  if (value.scope === null || value.scope === undefined) {
    putHead(0x0d, name);
    putText(value.code);
    return;
  }
  putHead(0x0f, name);
  const lengthAt = at;
  putInt32(0);
  putText(value.code);
  putDocument(value.scope);
  putInt32At(at - lengthAt, lengthAt);
}

function putDocument(doc: Doc, id?: unknown): void {
  const lengthAt = begin();
  if (id !== undefined) putElement('_id', id, false);
  for (const name in doc) {
    // Only own fields are data; `for in` is faster than `Object.keys` on documents.
    if (!Object.prototype.hasOwnProperty.call(doc, name)) continue;
    if (id !== undefined && name === '_id') continue;
    putElement(name, doc[name], false);
  }
  finish(lengthAt);
}

function putArray(list: readonly unknown[]): void {
  const lengthAt = begin();
  for (let index = 0; index < list.length; index++) putElement(String(index), list[index], true);
  finish(lengthAt);
}

function begin(): number {
  if (++depth > MAX_DEPTH) throw new BsonValueError(`documents are cyclic or nested deeper than ${MAX_DEPTH} levels`);
  const lengthAt = at;
  putInt32(0);
  return lengthAt;
}

function finish(lengthAt: number): void {
  reserve(1);
  scratch[at++] = 0;
  putInt32At(at - lengthAt, lengthAt);
  depth--;
}

/**
 * Encodes a document of engine or application values (the rules agree: integral numbers in range are int32, bigint and
 * Long are int64, `undefined` is null). With `id`, that value becomes the first field and the document's own `_id` is
 * ignored. With `ignoreUndefined` such fields are left out. Throws BsonValueError.
 */
export function encodeDocument(doc: Doc, id?: unknown, ignoreUndefined = false): Buffer {
  at = 0;
  depth = 0;
  skipUndefined = ignoreUndefined;
  try {
    putDocument(doc, id);
    return Buffer.from(scratch.subarray(0, at));
  } finally {
    if (scratch.length > KEPT_CAPACITY) scratch = Buffer.allocUnsafeSlow(FIRST_CAPACITY);
  }
}
