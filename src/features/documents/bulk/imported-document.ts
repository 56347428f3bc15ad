import { invalid } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import type { Collection } from '../../collections/collection.js';
import { findDate } from '../../collections/fields/find-date.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { SYSTEM_FIELDS } from '../../collections/fields/field.js';
import type { StoredDocument } from '../store/document.js';
import { readNewDocument } from '../write/new-document.js';

/**
 * The document that an imported value asks for: checked like an insert by the project itself, except that the system
 * fields of an export are taken over, so that data can be moved with its ids and times. Throws 400.
 */
export function readImportedDocument(collection: Collection, value: unknown, now: number): StoredDocument {
  if (!isJsonObject(value)) return readNewDocument(collection, value, null, now);
  const document = readNewDocument(collection, withoutSystemFields(value), null, now);
  const { _id: id, isDeleted, deletedAt } = value;
  if (id !== undefined) {
    const found = typeof id === 'string' ? findObjectId(id) : null;
    if (!found) throw invalid('INVALID_ID', '_id must be 24 hexadecimal digits');
    document._id = found;
  }
  for (const name of ['createdAt', 'updatedAt'] as const) {
    if (value[name] !== undefined) document[name] = requireDate(name, value[name]);
  }
  if (isDeleted !== undefined && typeof isDeleted !== 'boolean') {
    throw invalid('VALIDATION_FAILED', 'isDeleted must be true or false');
  }
  if (isDeleted === true) {
    document.isDeleted = true;
    document.deletedAt = requireDate('deletedAt', deletedAt);
  }
  return document;
}

/** What an exported document says of itself, without what the service says of it. */
export function withoutSystemFields(value: Record<string, unknown>): Record<string, unknown> {
  const own = { ...value };
  for (const name of SYSTEM_FIELDS) delete own[name];
  return own;
}

function requireDate(name: string, value: unknown): Date {
  const date = typeof value === 'string' ? findDate(value) : null;
  if (!date) throw invalid('VALIDATION_FAILED', `${name} must be a Date`);
  return date;
}
