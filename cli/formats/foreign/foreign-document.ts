import { isJsonObject } from '../../../src/features/collections/fields/field-type.js';
import { foreignId } from './foreign-id.js';
import { findForeignMoment } from './foreign-moment.js';

/** Services whose exported documents are lines of JSON. */
export const LINE_SOURCES = ['firestore', 'supabase', 'parse'] as const;
export type LineSource = (typeof LINE_SOURCES)[number];

type JsonObject = Record<string, unknown>;

export interface FirestorePlace {
  /** Name of the collection there; documents of others are left out. */
  collection: string;
  /** The field that gets the id of the document which a subcollection belongs to. */
  parent?: string;
}

/** A document as `data import` takes it; null for one of another collection. Throws for what is no document. */
export function readForeignDocument(source: LineSource, value: unknown, place: FirestorePlace): JsonObject | null {
  if (!isJsonObject(value)) throw new Error('a line must be a JSON object');
  if (source === 'firestore') return fromFirestore(value, place);
  return source === 'parse' ? fromParse(value) : fromSupabase(value);
}

/** `projects/p/databases/d/documents/<collection>/<id>` with `fields`, as Firestore's REST interface answers it. */
function fromFirestore(
  { name, fields, createTime, updateTime }: JsonObject,
  { collection, parent }: FirestorePlace,
): JsonObject | null {
  const path = typeof name === 'string' ? documentPath(name) : [];
  if (path.length < 2 || !isJsonObject(fields ?? {})) {
    throw new Error('not a document of Firestore: it has "name" and "fields"');
  }
  if (path.at(-2) !== collection) return null;
  return {
    ...readFirestoreFields(fields ?? {}),
    _id: foreignId(path.at(-1)!).toHexString(),
    ...(parent !== undefined && path.length > 3 && { [parent]: foreignId(path.at(-3)!).toHexString() }),
    ...times(createTime, updateTime),
  };
}

/** The names below `/documents/`: collection, id, collection, id … */
const documentPath = (name: string): string[] => name.replace(/^.*?\/documents\//, '').split('/');

function readFirestoreFields(fields: unknown): JsonObject {
  const entries = Object.entries(fields as JsonObject).map(
    ([name, value]) => [name, readFirestoreValue(value)] as const,
  );
  return Object.fromEntries(entries.filter(([, value]) => value !== null));
}

function readFirestoreValue(value: unknown): unknown {
  const [[kind, held] = ['', null]] = Object.entries(isJsonObject(value) ? value : {});
  const { values = [], fields = {} } = (isJsonObject(held) ? held : {}) as { values?: unknown[]; fields?: unknown };
  const point = held as { latitude?: number; longitude?: number };
  switch (kind) {
    case 'nullValue':
      return null;
    case 'integerValue':
    case 'doubleValue':
      return readNumber(held);
    case 'timestampValue':
      return findForeignMoment(held) ?? held;
    case 'referenceValue':
      return foreignId(documentPath(String(held)).at(-1)!).toHexString();
    case 'geoPointValue':
      return { type: 'Point', coordinates: [point.longitude ?? 0, point.latitude ?? 0] };
    case 'arrayValue':
      return values.map(readFirestoreValue);
    case 'mapValue':
      return readFirestoreFields(fields);
    case 'stringValue':
    case 'booleanValue':
    case 'bytesValue':
      return held;
    default:
      throw new Error(`"${kind}" is no kind of value of Firestore`);
  }
}

/** A number that JSON holds exactly; others stay the text that Firestore writes. */
function readNumber(held: unknown): unknown {
  const number = Number(held);
  return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number)) ? number : held;
}

/** A row as `row_to_json` writes it. */
function fromSupabase({ id, created_at: createdAt, updated_at: updatedAt, ...row }: JsonObject): JsonObject {
  if (typeof id !== 'string' && typeof id !== 'number') throw new Error('the row has no column "id"');
  const present = Object.entries(row).filter(([, value]) => value !== null);
  return {
    ...Object.fromEntries(present),
    _id: foreignId(String(id)).toHexString(),
    ...times(createdAt, updatedAt),
  };
}

const PARSE_KEPT: ReadonlySet<string> = new Set(['_id', '_created_at', '_updated_at', '_rperm', '_wperm', '_acl']);

/** A document as `mongoexport` writes it of the database of a Parse server. */
function fromParse(document: JsonObject): JsonObject {
  if (typeof document._id !== 'string') throw new Error('the document has no "_id" of Parse');
  const own = Object.entries(document).flatMap(([name, value]): [string, unknown][] => {
    if (PARSE_KEPT.has(name) || value === null) return [];
    // `_p_author` holds a pointer, `<class>$<id>`.
    if (name.startsWith('_p_') && typeof value === 'string') {
      return [[name.slice('_p_'.length), foreignId(value.replace(/^[^$]*\$/, '')).toHexString()]];
    }
    return [[name, readExtended(value)]];
  });
  return {
    ...Object.fromEntries(own),
    _id: foreignId(document._id).toHexString(),
    ...times(readExtended(document._created_at), readExtended(document._updated_at)),
  };
}

/** The values of MongoDB's extended JSON that Parse stores, and Parse's own pointers. */
export function readExtended(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readExtended);
  if (!isJsonObject(value)) return value;
  const { $date: date, $numberLong: long, $oid: oid, $numberInt: int, $numberDouble: double } = value;
  if (isJsonObject(date)) return new Date(Number(date.$numberLong)).toISOString();
  if (date !== undefined) return findForeignMoment(date) ?? date;
  if (oid !== undefined) return oid;
  const number = long ?? int ?? double;
  if (number !== undefined) return readNumber(number);
  if (value.__type === 'Pointer') return foreignId(String(value.objectId)).toHexString();
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, readExtended(each)]));
}

/** Of a document that says when it was stored and changed; the import refuses a text that names no moment. */
function times(created: unknown, updated: unknown): JsonObject {
  const [createdAt, updatedAt] = [created, updated].map((text) => findForeignMoment(text) ?? text ?? undefined);
  return { ...(createdAt !== undefined && { createdAt }), ...(updatedAt !== undefined && { updatedAt }) };
}
