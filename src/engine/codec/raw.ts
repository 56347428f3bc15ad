import { BsonFormatError, decodeDocument, skipValue } from './decode.js';
import { ObjectId } from './bson.js';
import { encodeDocument } from './encode.js';

const ID_FIELD: ReadonlySet<string> = new Set(['_id']);
const MAX_DEPTH = 200;

/** Where a top-level element lies inside a document: its type byte at `start`, its value from `value` to `end`. */
interface ElementPlace {
  type: number;
  start: number;
  value: number;
  end: number;
}

function isIdAt(bytes: Buffer, start: number): boolean {
  return (
    bytes[start + 1] === 0x5f && bytes[start + 2] === 0x69 && bytes[start + 3] === 0x64 && bytes[start + 4] === 0x00
  );
}

function findId(bytes: Buffer): ElementPlace | null {
  let start = 4;
  for (;;) {
    const type = bytes[start];
    if (type === undefined) throw new BsonFormatError('document ends too early');
    if (type === 0) return null;
    const nameEnd = bytes.indexOf(0, start + 1);
    if (nameEnd < 0) throw new BsonFormatError('field name runs over');
    const end = skipValue(bytes, type, nameEnd + 1);
    if (isIdAt(bytes, start)) return { type, start, value: nameEnd + 1, end };
    start = end;
  }
}

/** The decoded `_id` of a stored document, undefined when it has none. */
export function readId(bytes: Buffer): unknown {
  return decodeDocument(bytes, 'engine', ID_FIELD)['_id'];
}

/**
 * The document with `_id` as its first field, as the server stores it; a new ObjectId when there is none. The same
 * buffer when nothing had to move.
 */
export function withIdFirst(bytes: Buffer): Buffer {
  const place = findId(bytes);
  if (place !== null && place.start === 4) return bytes;
  const element =
    place === null ? encodeDocument({ _id: new ObjectId() }).subarray(4, 21) : bytes.subarray(place.start, place.end);
  const parts =
    place === null
      ? [bytes.subarray(0, 4), element, bytes.subarray(4)]
      : [bytes.subarray(0, 4), element, bytes.subarray(4, place.start), bytes.subarray(place.end)];
  const result = Buffer.concat(parts);
  result.writeInt32LE(result.length, 0);
  return result;
}

/**
 * Walks the whole document and throws BsonFormatError for anything that is not well-formed, so that bytes from the
 * network can be stored as they are.
 */
export function validateDocument(bytes: Buffer): void {
  const end = validateFrom(bytes, 0, bytes.length, 0);
  if (end !== bytes.length) throw new BsonFormatError('document length is wrong');
}

function validateFrom(bytes: Buffer, start: number, limit: number, depth: number): number {
  if (depth > MAX_DEPTH) throw new BsonFormatError(`nested deeper than ${MAX_DEPTH} levels`);
  if (start + 5 > limit) throw new BsonFormatError('document length is wrong');
  const end = start + bytes.readInt32LE(start);
  if (end < start + 5 || end > limit || bytes[end - 1] !== 0) throw new BsonFormatError('document length is wrong');
  let at = start + 4;
  while (at < end - 1) {
    const type = bytes[at]!;
    if (type === 0) throw new BsonFormatError('document ends too early');
    const nameEnd = bytes.indexOf(0, at + 1);
    if (nameEnd < 0 || nameEnd >= end - 1) throw new BsonFormatError('field name runs over');
    const value = nameEnd + 1;
    at = skipValue(bytes, type, value);
    if (at > end - 1) throw new BsonFormatError('value runs over');
    if (type === 0x03 || type === 0x04) validateFrom(bytes, value, at, depth + 1);
    else if (type === 0x02 || type === 0x0d || type === 0x0e) validateText(bytes, value, at);
    else if (type === 0x0f || type === 0x0c) decodeDocument(bytes.subarray(start, end));
  }
  return end;
}

function validateText(bytes: Buffer, value: number, end: number): void {
  if (bytes.readInt32LE(value) < 1 || bytes[end - 1] !== 0) throw new BsonFormatError('string length is wrong');
}
