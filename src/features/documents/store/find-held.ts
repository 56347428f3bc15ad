import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { storedPath } from '../../access/rules/pins.js';
import type { Collection } from '../../collections/collection.js';
import { documentStore } from './document-store.js';

/** What the document that meets a filter holds at the paths that rules name; null when there is none. */
export function findHeld(
  app: App,
  collection: Collection,
  filter: Document,
  paths: readonly string[],
): Promise<Document | null> {
  const projection = Object.fromEntries(['_id', ...paths.map(storedPath)].map((path) => [path, 1]));
  return documentStore(app, collection).findOne(filter, { ...app.db.confirmedReads, projection });
}
