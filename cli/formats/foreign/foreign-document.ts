import type { Note } from '../../../src/features/documents/bulk/extended-json.js';
import { isJsonObject, findDate } from '../../../src/features/collections/fields/field-type.js';
import { createHash } from 'node:crypto';
import { ObjectId } from 'bson';
import type { Field, FieldShape } from '../../../src/features/collections/fields/field.js';
import { findObjectId } from '../../../src/platform/ids.js';

/** Services whose exported documents are JSON, or rows of CSV. */
export const LINE_SOURCES = ['firestore', 'supabase', 'parse', 'mongodb'] as const;
export type LineSource = (typeof LINE_SOURCES)[number];

type JsonObject = Record<string, unknown>;

export interface ForeignPlace {
  /** Name of the collection there; of Firestore, documents of others are left out. */
  collection: string;
  /** Firestore: the field that gets the id of the document which a subcollection belongs to. */
  parent?: string;
  /** Names of the fields that the collection here declares. */
  declared: ReadonlySet<string>;
}

/** A document as `data import` takes it, and the id that it has there. */
export interface ForeignDocument {
  id: string;
  document: JsonObject;
}

/**
 * Reads an exported document; null for one of another collection. Throws for what is no document; `note` receives what
 * is left out or changed.
 */
export function readForeignDocument(
  source: LineSource,
  value: unknown,
  place: ForeignPlace,
  note: Note,
): ForeignDocument | null {
  if (!isJsonObject(value)) throw new Error('a line must be a JSON object');
  if (source === 'firestore') return fromFirestore(value, place, note);
  if (source === 'supabase') return fromSupabase(value, place, note);
  return source === 'parse' ? fromParse(value, note) : fromMongodb(value);
}

/**
 * `projects/p/databases/d/documents/<collection>/<id>` with `fields`, as Firestore's REST interface answers it, alone
 * or as the `document` of a query's result.
 */
function fromFirestore(value: JsonObject, { collection, parent }: ForeignPlace, note: Note): ForeignDocument | null {
  const { name, fields, createTime, updateTime } = isJsonObject(value.document) ? value.document : value;
  const path = typeof name === 'string' ? documentPath(name) : [];
  if (path.length < 2 || !isJsonObject(fields ?? {})) {
    throw new Error('not a Firestore document: "name" and "fields" are required');
  }
  if (path.at(-2) !== collection) return null;
  const own = readFirestoreFields(fields ?? {}, note, '');
  const above = parent !== undefined && path.length > 3 ? { [parent]: pathId(path.slice(0, -2)) } : {};
  return {
    id: path.at(-1)!,
    document: withSystemFields(
      { ...own, ...above },
      { id: pathId(path), created: createTime, updated: updateTime },
      note,
    ),
  };
}

/** The names below `/documents/`: collection, id, collection, id … */
const documentPath = (name: string): string[] => name.replace(/^.*?\/documents\//, '').split('/');

/** Ids of Firestore are unique below one document only, so those of a subcollection are made of their whole path. */
const pathId = (path: readonly string[]): string =>
  foreignId(path.length > 2 ? path.join('/') : path.at(-1)!).toHexString();

function readFirestoreFields(fields: unknown, note: Note, path: string): JsonObject {
  return Object.fromEntries(
    Object.entries(fields as JsonObject).map(([name, value]) => [
      name,
      readFirestoreValue(value, note, path === '' ? name : `${path}.${name}`),
    ]),
  );
}

function readFirestoreValue(value: unknown, note: Note, path: string): unknown {
  const [[kind, held] = ['', null]] = Object.entries(isJsonObject(value) ? value : {});
  const { values = [], fields = {} } = (isJsonObject(held) ? held : {}) as { values?: unknown[]; fields?: unknown };
  const point = held as { latitude?: number; longitude?: number };
  switch (kind) {
    case 'nullValue':
      return null;
    case 'integerValue':
      return { $numberLong: String(held) };
    case 'doubleValue':
      return { $numberDouble: String(held) };
    case 'timestampValue':
      return findForeignTime(held) ?? held;
    case 'referenceValue':
      return pathId(documentPath(String(held)));
    case 'geoPointValue':
      return { type: 'Point', coordinates: [point.longitude ?? 0, point.latitude ?? 0] };
    case 'arrayValue':
      return values.map((each) => readFirestoreValue(each, note, path));
    case 'mapValue':
      return readFirestoreFields(fields, note, path);
    case 'bytesValue':
      note(path, 'binary data, stored as base64 text');
      return held;
    case 'stringValue':
    case 'booleanValue':
      return held;
    default:
      throw new Error(`"${kind}" is not a type of Firestore value`);
  }
}

/** A row as `row_to_json` writes it, or as a row of CSV. Columns that are declared as fields are kept as such, too. */
function fromSupabase(row: JsonObject, { declared }: ForeignPlace, note: Note): ForeignDocument {
  const id = scalarText(row.id);
  if (id === null) throw new Error('the row has no column "id"');
  const { created_at: created, updated_at: updated } = row;
  const own = Object.entries(row).filter(
    ([name]) => !['id', 'created_at', 'updated_at'].includes(name) || declared.has(name),
  );
  for (const [name, theirs] of [
    ['created_at', 'createdAt'],
    ['updated_at', 'updatedAt'],
  ] as const) {
    const isLost = isPresent(row[name]) && isPresent(row[theirs]) && !declared.has(name);
    if (isLost) note(name, `left out: ${theirs} is there too`);
  }
  return { id, document: withSystemFields(Object.fromEntries(own), { id: hexId(id), created, updated }, note) };
}

const hexId = (id: string): string => foreignId(id).toHexString();

/** The text of an id: text, or a number, however long. */
function scalarText(value: unknown): string | null {
  if (typeof value === 'string' && value !== '') return value;
  if (typeof value === 'number') return String(value);
  if (!isJsonObject(value)) return null;
  const {
    $oid: oid,
    $uuid: uuid,
    $numberLong: long,
    $numberInt: int,
    $numberDecimal: decimal,
    $numberDouble: double,
  } = value;
  return scalarText(oid ?? uuid ?? long ?? int ?? decimal ?? double);
}

/** What Parse keeps in a document for itself. */
const PARSE_KEPT: ReadonlySet<string> = new Set([
  ...['_id', 'objectId', '_created_at', '_updated_at', 'className', '__type'],
  ...['_rperm', '_wperm', '_acl', 'ACL'],
]);
const PARSE_ACCESS: ReadonlySet<string> = new Set(['_rperm', '_wperm', '_acl', 'ACL']);

/** A document as `mongoexport` writes it of the database of a Parse server, or as its dashboard exports it. */
function fromParse(value: JsonObject, note: Note): ForeignDocument {
  const id = scalarText(value.objectId ?? value._id);
  if (id === null) throw new Error('the document has no "_id" or "objectId"');
  const own = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (PARSE_ACCESS.has(name)) note(name, 'left out: access is set by rules');
    if (PARSE_KEPT.has(name)) return [];
    // `_p_author` holds a pointer, `<class>$<id>`.
    if (name.startsWith('_p_') && typeof each === 'string') {
      return [[name.slice('_p_'.length), hexId(each.replace(/^[^$]*\$/, ''))]];
    }
    const read = readParseValue(each, note, name);
    return read === undefined ? [] : [[name, read]];
  });
  const { _created_at: created, _updated_at: updated } = value;
  return { id, document: withSystemFields(Object.fromEntries(own), { id: hexId(id), created, updated }, note) };
}

/** Parse's own types of values; the rest is Extended JSON. */
export function readParseValue(value: unknown, note: Note = () => undefined, path = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => readParseValue(item, note, path));
  if (!isJsonObject(value)) return value;
  switch (value.__type) {
    case 'Date':
      return value.iso;
    case 'Pointer':
    case 'Object':
      return hexId(String(value.objectId));
    case 'GeoPoint':
      return { type: 'Point', coordinates: [value.longitude, value.latitude] };
    case 'Bytes':
      note(path, 'binary data, stored as base64 text');
      return value.base64;
    case 'File':
      note(path, 'a file: its name and URL are stored, not its content');
      return { name: value.name, url: value.url };
    case 'Relation':
      note(path, 'left out: Parse keeps a relation in a separate collection');
      return undefined;
    default:
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, readParseValue(each, note, path)]));
  }
}

/** A document as `mongoexport` writes it; an id that is no ObjectId becomes one. */
function fromMongodb(value: JsonObject): ForeignDocument {
  const { _id: given, ...own } = value;
  if (!isPresent(given)) throw new Error('the document has no "_id"');
  // CSV has ids as ObjectId(665f…).
  const id = (scalarText(given) ?? JSON.stringify(given)).replace(/^ObjectId\(([0-9a-f]{24})\)$/i, '$1');
  return { id, document: { ...own, _id: hexId(id) } };
}

/**
 * The document with its id and times here. A time of its own wins over the one of the service, which is that of a copy
 * where data was moved before; one that is no time is left out.
 */
export function withSystemFields(
  own: JsonObject,
  { id, created, updated }: { id: string; created: unknown; updated: unknown },
  note: Note,
): JsonObject {
  const document: JsonObject = { ...own };
  if (Object.hasOwn(own, '_id')) note('_id', 'left out: it names the id of the document');
  document._id = id;
  for (const [name, theirs] of [
    ['createdAt', created],
    ['updatedAt', updated],
  ] as const) {
    const moment = findForeignTime(own[name]) ?? (isExtendedDate(own[name]) ? own[name] : undefined);
    if (moment === undefined && isPresent(own[name])) {
      note(name, 'left out: it is not a time, and the name is reserved');
    }
    const kept = moment ?? findForeignTime(theirs) ?? theirs;
    if (isPresent(kept)) document[name] = kept;
    else delete document[name];
  }
  return document;
}

const isExtendedDate = (value: unknown): boolean => isJsonObject(value) && value.$date !== undefined;

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

const MOMENT = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}(?::?\d{2})?)?$/i;

/**
 * The moment that text of another service names, as ISO 8601 to the millisecond; undefined for other text. PocketBase
 * and PostgreSQL write a space for the T, PostgreSQL an offset of hours alone, and none for `timestamp`: that is UTC.
 */
export function findForeignTime(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const [, day, time, seconds = ':00', zone = 'Z'] = MOMENT.exec(text) ?? [];
  const offset = zone.replace(/^(.\d\d):?(\d\d)?$/, (_, hours: string, minutes = '00') => `${hours}:${minutes}`);
  return findDate(day === undefined ? text : `${day}T${time}${seconds}${offset}`)?.toISOString();
}

/**
 * The id here of what has another id in another service: the first 12 bytes of its SHA-256; 24 hexadecimal digits stay.
 * It depends on nothing else, so references find what they name whichever file is imported first, and an import that is
 * repeated finds what it stored.
 */
export function foreignId(id: string): ObjectId {
  return findObjectId(id) ?? new ObjectId(createHash('sha256').update(id).digest().subarray(0, 12));
}

/** The document with the ids of another service in its Ref fields as the ids here, and its dates as they are taken. */
export function withOwnValues(fields: readonly Field[], document: Record<string, unknown>): Record<string, unknown> {
  const own = { ...document };
  for (const field of fields) {
    if (Object.hasOwn(own, field.name)) own[field.name] = withOwnValue(field, own[field.name]);
  }
  return own;
}

function withOwnValue(shape: FieldShape, value: unknown): unknown {
  // Keys are numbers in many databases.
  const isKey = (typeof value === 'string' && value !== '') || typeof value === 'number';
  if (shape.type === 'Ref' && isKey) return foreignId(String(value)).toHexString();
  if (shape.type === 'Date') return findForeignTime(value) ?? value;
  if (shape.fields && isJsonObject(value)) return withOwnValues(shape.fields, value);
  if (shape.items && Array.isArray(value)) return value.map((item) => withOwnValue(shape.items!, item));
  return value;
}
