import { invalid } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import type { Collection } from '../../collections/collection.js';
import { findDate, isJsonObject } from '../../collections/fields/field-type.js';
import { SYSTEM_FIELDS } from '../../collections/fields/field.js';
import type { StoredDocument } from '../store/document.js';
import { readNewDocument } from '../write/new-document.js';
import { type Note, readExtendedDocument } from './extended-json.js';

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
    if (!found) {
      throw invalid('INVALID_ID', '_id must be 24 hexadecimal digits (import --from mongodb makes them of other ids)');
    }
    document._id = found;
  }
  for (const name of ['createdAt', 'updatedAt'] as const) {
    if (value[name] !== undefined && value[name] !== null) document[name] = requireDate(name, value[name]);
  }
  if (isDeleted !== undefined && isDeleted !== null && typeof isDeleted !== 'boolean') {
    throw invalid('VALIDATION_FAILED', 'isDeleted must be true or false');
  }
  if (isDeleted === true) {
    document.isDeleted = true;
    document.deletedAt = requireDate('deletedAt', deletedAt);
  }
  return document;
}

/** The value without what only other programs understand: Extended JSON, and fields that they keep for themselves. */
export function readForeignValue(collection: Collection, value: unknown, note: Note): unknown {
  if (!isJsonObject(value)) return value;
  return withoutForeignFields(collection, readExtendedDocument(collection.fields, value, note), note);
}

/** Fields that other programs keep in every document for themselves. */
const FOREIGN_FIELDS = ['__v', 'schemaVersion'];

/** Leaves them out where the fields are checked and these are not declared: the document would be refused for them. */
function withoutForeignFields(
  { mode, fields }: Collection,
  value: Record<string, unknown>,
  note: Note,
): Record<string, unknown> {
  if (mode !== 'enforced') return value;
  const left = FOREIGN_FIELDS.filter(
    (name) => typeof value[name] === 'number' && !fields.some((field) => field.name === name),
  );
  if (left.length === 0) return value;
  for (const name of left) note(name, 'left out: it is no field of the collection');
  return Object.fromEntries(Object.entries(value).filter(([name]) => !left.includes(name)));
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

/** What was stored as something else than it was, or left out. */
export interface ImportNote {
  field: string;
  message: string;
  count: number;
  /** The first of the values, or its line in the file. */
  index: number;
}

/** Different notes that are kept: a file can cause any number of them. */
const MAX_NOTES = 100;

/** Counts notes by field and message. */
export class ImportNotes {
  readonly #notes = new Map<string, ImportNote>();

  add(field: string, message: string, index: number, count = 1): void {
    const key = `${field}\n${message}`;
    const there = this.#notes.get(key);
    if (there) there.count += count;
    else if (this.#notes.size < MAX_NOTES) this.#notes.set(key, { field, message, count, index });
  }

  /** Adds those of a batch; `indexOf` says where its values are in the whole. */
  merge(notes: readonly ImportNote[] | undefined, indexOf: (index: number) => number): void {
    for (const { field, message, count, index } of notes ?? []) this.add(field, message, indexOf(index), count);
  }

  get list(): ImportNote[] {
    return [...this.#notes.values()];
  }
}
