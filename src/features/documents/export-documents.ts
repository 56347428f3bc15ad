import type { App } from '../../app.js';
import type { Collection } from '../collections/collection.js';
import { visibleDocuments } from './document.js';
import { documentStore } from './document-store.js';
import { presentDocument, type PresentedDocument } from './present-document.js';

const BATCH_SIZE = 500;

/** All documents of a collection in the order of their ids, one at a time; with the trash when asked. Of `users`, password hashes are left out. */
export async function* exportDocuments(
  app: App,
  collection: Collection,
  options: { includeDeleted: boolean },
): AsyncGenerator<PresentedDocument> {
  const visible = visibleDocuments(options.includeDeleted);
  const cursor = documentStore(app, collection).find(visible).sort({ _id: 1 }).batchSize(BATCH_SIZE);
  for await (const document of cursor) {
    const presented = presentDocument(document);
    if (collection.name === 'users') delete presented.password;
    yield presented;
  }
}
