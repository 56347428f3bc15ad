import { ObjectId } from 'bson';
import { forbidden, invalid, type AppError } from '../../../errors.js';
import type { Writer } from '../../access/access-rules.js';
import { findObjectId } from '../../../platform/ids.js';
import type { Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD, KEPT_FIELDS } from '../../collections/fields/field.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import type { StoredDocument } from '../store/document.js';
import { documentShape, storeObject } from '../store/document-shape.js';
import { requireSettable } from './admit-write.js';
import { rejectUnsafeValue } from '../store/unsafe-values.js';
import { Problems } from '../reply/problems.js';

/**
 * The document that an insert's body asks for (rest-api.md 2.4, 4.2; decisions.md 3), with an end user as its owner.
 * Throws 401 for an anonymous caller, 400 with every problem, 403 OWNER_MISMATCH or FIELD_FIXED when an end user names
 * another owner, 403 FIELD_PROTECTED. It may bring its own `_id`. Whether a rule of the collection admits it is
 * requireCreatable's to say.
 */
export function readNewDocument(collection: Collection, body: unknown, writer: Writer, now: number): StoredDocument {
  const problems = new Problems();
  const id = ownIdOf(body);
  const document = checkNewDocument(collection, id ? withoutId(body) : body, writer, now, problems);
  problems.throwIfAny();
  if (id) document._id = id;
  return document;
}

/** The id that a new document brings along (writes.md 4); null where the service gives it one. */
function ownIdOf(body: unknown): ObjectId | null {
  return isJsonObject(body) && typeof body._id === 'string' ? findObjectId(body._id) : null;
}

function withoutId(body: unknown): unknown {
  const { _id, ...others } = body as Record<string, unknown>;
  return others;
}

/**
 * readNewDocument that adds violations of the schema to `problems` instead of throwing; the result then means nothing.
 */
export function checkNewDocument(
  collection: Collection,
  body: unknown,
  writer: Writer,
  now: number,
  problems: Problems,
): StoredDocument {
  writer?.requireKnown('create');
  if (!isJsonObject(body)) throw invalid('INVALID_BODY', 'A document must be a JSON object');
  rejectUnsafeValue(body);
  const own = withoutKeptFields(withWriter(collection, body, writer), problems);
  const stored = storeObject(documentShape(collection), own, problems, now);
  const moment = new Date(now);
  const document: StoredDocument = {
    _id: new ObjectId(),
    ...stored,
    isDeleted: false,
    deletedAt: null,
    createdAt: moment,
    updatedAt: moment,
    // WRITTEN_BY
    ...(writer?.userId && collection.rules && { [HIDDEN_FIELD]: { by: writer.userId } }),
  };
  // What does not fit is reported first.
  if (writer?.fields && problems.summary === null) requireSettable(collection, writer, body, document);
  return document;
}

/** The body with the writer's id in the owner field and in stamps. 403 for another's. */
export function withWriter(
  collection: Collection,
  body: Record<string, unknown>,
  writer: Writer,
): Record<string, unknown> {
  return withStamps(collection, withOwner(body, writer), writer);
}

function withOwner(body: Record<string, unknown>, writer: Writer): Record<string, unknown> {
  if (!writer || writer.ownerField === null) return body;
  const { ownerField, userId } = writer;
  if (!Object.hasOwn(body, ownerField)) return { ...body, [ownerField]: userId };
  if (body[ownerField] === userId) return body;
  throw forbidden('OWNER_MISMATCH', `${ownerField} must be the signed-in user`);
}

/** The user's id in the fields that ask for it; 403 FIELD_FIXED where another's is sent for one that never changes. */
function withStamps({ fields }: Collection, body: Record<string, unknown>, writer: Writer): Record<string, unknown> {
  if (!writer?.userId) return body;
  const { userId } = writer;
  const stamped = fields.filter(({ stamp }) => stamp);
  if (stamped.length === 0) return body;
  const own = { ...body };
  for (const { name, fixed } of stamped) {
    const given = Object.hasOwn(own, name) ? own[name] : undefined;
    if (given === undefined) own[name] = userId;
    else if (fixed && given !== userId) throw fieldFixed(name, 'is the signed-in user');
  }
  return own;
}

/** The refusal of a value for a field that the service sets, or that never changes. */
export function fieldFixed(field: string, text: string): AppError {
  const message = `${field} ${text}`;
  return forbidden('FIELD_FIXED', message, { details: [{ field, rule: 'fixed', message }] });
}

/**
 * Takes out the fields that the service keeps. They are no problem when they hold what the new document will have
 * anyway.
 */
function withoutKeptFields(body: Record<string, unknown>, problems: Problems): Record<string, unknown> {
  if (!KEPT_FIELDS.some((name) => Object.hasOwn(body, name))) return body;
  const own = { ...body };
  for (const name of KEPT_FIELDS) {
    if (!Object.hasOwn(own, name)) continue;
    const same = (name === 'isDeleted' && own[name] === false) || (name === 'deletedAt' && own[name] === null);
    const text = name === '_id' ? 'must have 24 hexadecimal digits' : 'is set by the service';
    if (!same) problems.add('system', text, name);
    delete own[name];
  }
  return own;
}
