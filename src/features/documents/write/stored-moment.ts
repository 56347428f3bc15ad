import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { loadMatchers } from '../../../platform/database/database.js';
import type { Collection } from '../../collections/collection.js';
import { decodeStored } from '../reply/encode-document.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';

/**
 * A document as one read found it. Everything that is said about a refused write is judged by it: two reads can find
 * two versions, and what is true of neither.
 */
export interface StoredMoment {
  document: StoredDocument;
  /** True if the document met the filter at that moment. */
  meets: (filter: Document) => boolean;
}

/** The shown document in a state, as it is now; null where there is none. */
export async function findMoment(
  app: App,
  collection: Collection,
  state: Record<string, unknown>,
): Promise<StoredMoment | null> {
  const openMatcher = await loadMatchers();
  const stored = (await documentStore(app, collection).findOne(state, { raw: true })) as Buffer | null;
  return (
    stored && {
      document: decodeStored(stored) as StoredDocument,
      meets: (filter) => openMatcher(filter).matches(stored),
    }
  );
}
