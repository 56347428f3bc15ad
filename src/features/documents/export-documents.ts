import type { App } from '../../app.js';
import { documentsName, type Collection } from '../collections/collection.js';
import { visibleDocuments, type StoredDocument } from './document.js';
import { presentDocument, type PresentedDocument } from './present-document.js';

const BATCH_SIZE = 500;

/** All documents of a collection in the order of their ids, one at a time; with the trash when asked. Of `users`, password hashes are left out. */
export async function* exportDocuments(
  app: App,
  collection: Collection,
  options: { includeDeleted: boolean },
): AsyncGenerator<PresentedDocument> {
  const store = app.db.collection<StoredDocument>(documentsName(collection));
  const cursor = store.find(visibleDocuments(options.includeDeleted)).sort({ _id: 1 }).batchSize(BATCH_SIZE);
  for await (const document of cursor) {
    const presented = presentDocument(document);
    if (collection.name === 'users') delete presented.password;
    yield presented;
  }
}
