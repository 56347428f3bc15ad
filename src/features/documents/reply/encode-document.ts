import { deserialize } from 'bson';
import { BSON_OBJECT_ID, endOfName, endOfValue, JsonWriter, readInt32 } from '../../../platform/database/bson-json.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { META_FIELDS, presentDocument } from './present-document.js';

const OPEN = 0x5b;
const CLOSE = 0x5d;
const COMMA = 0x2c;

/** Encoding never waits for anything, so one buffer serves all that is not written into a reply at once. */
const writer = new JsonWriter();

/**
 * A document of a `raw` read as an object. Bytes that are not UTF-8 are replaced, so that one bad document does not
 * take its page along.
 */
export function decodeStored(stored: Buffer): Record<string, unknown> {
  return deserialize(stored, { validation: { utf8: false } });
}

/** The identifier and the meta fields of a document of a `raw` read: the rest of it is not decoded. */
export function decodeMeta(stored: Buffer): Record<string, unknown> {
  const kept: Buffer[] = [];
  const limit = readInt32(stored, 0) - 1;
  for (let at = 4; at < limit;) {
    const value = endOfName(stored, at + 1) + 1;
    const end = endOfValue(stored, stored[at]!, value);
    if (end < 0) return decodeStored(stored);
    const length = value - at - 2;
    const isMeta = length === META_LENGTH && META.some((name) => isName(stored, at + 1, name));
    if (isMeta || (length === ID.length && isName(stored, at + 1, ID))) kept.push(stored.subarray(at, end));
    at = end;
  }
  const head = Buffer.alloc(4);
  head.writeInt32LE(5 + kept.reduce((sum, { length }) => sum + length, 0));
  return decodeStored(Buffer.concat([head, ...kept, Buffer.alloc(1)]));
}

/** The JSON that presentDocument would give of a stored document's bytes; as `latin1` text (see replyEncodedJson). */
export function encodeStoredJson(stored: Buffer, meta: boolean): string {
  writer.clear();
  writeDocument(writer, stored, meta);
  return writer.text();
}

/** About so much of BSON becomes one part: encoding it takes a millisecond or two. */
const PART_BYTES = 256 * 1024;

/**
 * The JSON array of such documents in parts, each made when it is asked for; of one alone without the brackets if
 * `isArray` is false.
 */
export function* encodeInParts(
  stored: readonly Buffer[],
  meta: boolean,
  { isArray } = { isArray: true },
): Generator<string> {
  for (let at = 0; at < stored.length;) {
    writer.clear();
    let bytes = 0;
    for (; at < stored.length && bytes < PART_BYTES; at++) {
      if (isArray) writer.byte(at === 0 ? OPEN : COMMA);
      bytes += stored[at]!.length;
      writeDocument(writer, stored[at]!, meta);
    }
    if (isArray && at === stored.length) writer.byte(CLOSE);
    yield writer.text();
  }
}

/** Writes the JSON array of such documents. */
export function writeDocuments(out: JsonWriter, stored: readonly Buffer[], meta: boolean): void {
  out.byte(OPEN);
  for (let at = 0; at < stored.length; at++) {
    if (at > 0) out.byte(COMMA);
    writeDocument(out, stored[at]!, meta);
  }
  out.byte(CLOSE);
}

/** Writes the JSON of one such document. */
export function writeDocument(out: JsonWriter, stored: Buffer, meta: boolean): void {
  const place = out.place;
  out.reserve(stored.length);
  if (writeStored(out, stored, meta) && out.isTextSince(place)) return;
  out.cutTo(place);
  out.append(JSON.stringify(presentDocument(decodeStored(stored), meta)));
}

const META_NAMES = [...META_FIELDS];
/** They are of one length, so that most other names are distinguished by theirs. */
const META_LENGTH = 9;

/**
 * The places of the meta fields in the current document: name, value and end, by their position in META_NAMES; a name
 * at 0 is of none.
 */
const metaPlaces = new Int32Array(META_NAMES.length * 3);
const metaTypes = new Uint8Array(META_NAMES.length);

function writeStored(out: JsonWriter, stored: Buffer, meta: boolean): boolean {
  const limit = readInt32(stored, 0) - 1;
  metaPlaces.fill(0);
  out.open();
  if (!writeId(out, stored)) return false;
  for (let at = 4; at < limit;) {
    const type = stored[at]!;
    const value = endOfName(stored, at + 1) + 1;
    const end = endOfValue(stored, type, value);
    if (end < 0) return false;
    const length = value - at - 2;
    if (length === META_LENGTH && notePlace(stored, type, at + 1, value, end)) {
      at = end;
      continue;
    }
    const hidden =
      (length === ID.length && isName(stored, at + 1, ID)) ||
      (length === HIDDEN.length && isName(stored, at + 1, HIDDEN));
    if (!hidden && !out.element(stored, type, at + 1, value, end)) return false;
    at = end;
  }
  for (let index = 0; meta && index < META_NAMES.length; index++) {
    const name = metaPlaces[index * 3]!;
    if (name === 0) continue;
    if (!out.element(stored, metaTypes[index]!, name, metaPlaces[index * 3 + 1]!, metaPlaces[index * 3 + 2]!)) {
      return false;
    }
  }
  out.close();
  return true;
}

const ID = Buffer.from('_id');
const HIDDEN = Buffer.from(HIDDEN_FIELD);
const META = META_NAMES.map((name) => Buffer.from(name));

/** The identifier comes first in what we store; anything else is for the slower way. */
function writeId(out: JsonWriter, stored: Buffer): boolean {
  if (stored[4] !== BSON_OBJECT_ID || !isName(stored, 5, ID) || stored[8] !== 0) return false;
  return out.element(stored, BSON_OBJECT_ID, 5, 9, 21);
}

function notePlace(stored: Buffer, type: number, name: number, value: number, end: number): boolean {
  let index = 0;
  while (index < META.length && !isName(stored, name, META[index]!)) index++;
  if (index === META.length) return false;
  metaTypes[index] = type;
  metaPlaces[index * 3] = name;
  metaPlaces[index * 3 + 1] = value;
  metaPlaces[index * 3 + 2] = end;
  return true;
}

function isName(stored: Buffer, at: number, name: Buffer): boolean {
  for (let index = 0; index < name.length; index++) if (stored[at + index] !== name[index]) return false;
  return true;
}
