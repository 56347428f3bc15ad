import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { claimed, FLAG, ID, MOMENT, orNull, type Schema } from '../../../platform/schema/schema.js';

export type PresentedDocument = { _id: string } & Record<string, unknown>;

/**
 * The document as answered: `_id` as text first, the fields in stored order, then the system fields (left out when
 * `meta` is false). Works on projected documents too. Dates and ids below the top level are left to JSON, which writes
 * them as ISO 8601 UTC and hex.
 */
export function presentDocument(stored: Record<string, unknown>, meta = true): PresentedDocument {
  const presented: PresentedDocument = { _id: String(stored._id) };
  for (const name of Object.keys(stored)) {
    if (!META_FIELDS.has(name) && name !== '_id' && name !== HIDDEN_FIELD) presented[name] = stored[name];
  }
  if (meta) {
    for (const name of META_FIELDS) if (name in stored) presented[name] = stored[name];
  }
  return presented;
}

/** The system fields, in the order in which they end a document. */
export const META_FIELDS: ReadonlySet<string> = new Set(['isDeleted', 'deletedAt', 'createdAt', 'updatedAt']);

const SYSTEM_FIELDS = { _id: ID, isDeleted: FLAG, deletedAt: orNull(MOMENT), createdAt: MOMENT, updatedAt: MOMENT };

/** Codes of routes that answer with documents: too many large replies are under way. */
export const NO_ROOM = { 503: ['BUSY'] };

/** A document as writes answer it: the service's own fields, and whatever else it has. */
export const DOCUMENT: Schema<PresentedDocument> = claimed({
  title: 'Document',
  description: 'The fields of the collection, and those that the service keeps.',
  type: 'object',
  required: Object.keys(SYSTEM_FIELDS),
  properties: SYSTEM_FIELDS,
});

/** A document as reads answer it, where `fields` and `meta` may leave out what the service keeps. */
export const SHOWN_DOCUMENT: Schema<PresentedDocument> = claimed({
  title: 'ShownDocument',
  description: 'A document, or the part of it that was asked for; Ref fields named by `populate` are documents.',
  type: 'object',
  required: ['_id'],
  properties: SYSTEM_FIELDS,
});
