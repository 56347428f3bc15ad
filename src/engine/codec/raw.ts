import { decodeDocument } from './decode.js';
import { BsonFormatError, skipValue } from './elements.js';
import { ObjectId } from './bson.js';
import { encodeDocument } from './encode.js';

const ID_FIELD: ReadonlySet<string> = new Set(['_id']);

/** Where a top-level element lies inside a document. */
interface ElementPlace {
  start: number;
  end: number;
}

function isIdAt(bytes: Buffer, start: number): boolean {
  return (
    bytes[start + 1] === 0x5f && bytes[start + 2] === 0x69 && bytes[start + 3] === 0x64 && bytes[start + 4] === 0x00
  );
}

function findId(bytes: Buffer, from = 4): ElementPlace | null {
  let start = from;
  for (;;) {
    const type = bytes[start];
    if (type === undefined) throw new BsonFormatError('document ends too early');
    if (type === 0) return null;
    const nameEnd = bytes.indexOf(0, start + 1);
    if (nameEnd < 0) throw new BsonFormatError('field name runs over');
    const end = skipValue(bytes, type, nameEnd + 1);
    if (isIdAt(bytes, start)) return { start, end };
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

/** True for a document with more than one `_id`: a look for its `_id` would find now the one, now the other. */
export function hasSecondId(bytes: Buffer): boolean {
  const first = findId(bytes);
  return first !== null && findId(bytes, first.end) !== null;
}
