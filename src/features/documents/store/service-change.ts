import { serialize, type Document } from 'bson';
import { loadMatchers, type WriteTurn } from '../../../platform/database/database.js';
import { isFieldsObject } from '../../collections/fields/field-type.js';
import type { DecidedWrite } from './commit-writes.js';
import type { StoredDocument } from './document.js';
import { changing } from './explain-write-error.js';

/**
 * A change of the service's own: what the document has to match, values by their paths, and what is stored in the same
 * transaction.
 */
export interface ServiceChange {
  filter: Document;
  set: Record<string, unknown>;
  together?: readonly WriteTurn[];
}

/** An update with a change of the service's own: 409 DOCUMENT_CHANGING for a document that does not match it. */
export async function withServiceChange(
  update: DecidedWrite,
  { filter, set, together = [] }: ServiceChange,
): Promise<DecidedWrite> {
  const matches = await openMatch(filter);
  return {
    ...update,
    follow: together,
    decide(stored, ...asking) {
      if (stored && !matches(stored)) throw changing();
      return withValues(update.decide(stored, ...asking)!, set);
    },
  };
}

/** Whether a document at hand matches a filter. */
export async function openMatch(filter: Document): Promise<(document: Document) => boolean> {
  const matcher = (await loadMatchers())(filter);
  return (document) => matcher.matches(Buffer.from(serialize(document)));
}

/** The document with other values at paths; undefined takes out. A path through a list or a value stays as it is. */
export function withValues(document: StoredDocument, set: ServiceChange['set']): StoredDocument {
  return Object.entries(set).reduce(
    (next, [path, value]) => (withValueAt(next, path.split('.'), value) ?? next) as StoredDocument,
    document,
  );
}

function withValueAt(holder: unknown, [part, ...rest]: readonly string[], value: unknown): object | null {
  if (!isFieldsObject(holder)) return null;
  const { [part!]: held, ...others } = holder;
  if (rest.length === 0) return value === undefined ? others : { ...holder, [part!]: value };
  if (held === undefined && value === undefined) return holder;
  const inner = withValueAt(held === undefined ? {} : held, rest, value);
  return inner && { ...holder, [part!]: inner };
}
