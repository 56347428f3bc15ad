import { HIDDEN_FIELD } from '../../collections/fields/field.js';

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
