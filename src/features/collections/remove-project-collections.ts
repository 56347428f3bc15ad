import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { documentsPrefix } from './collection.js';
import { collectionStore, forgetCollection } from './collection-store.js';

/**
 * Removes all collections of a project that is being deleted, `users` and stored ones without a record among them.
 * Harmless to repeat.
 */
export async function removeProjectCollections(app: App, projectId: ObjectId): Promise<void> {
  for await (const collection of collectionStore(app).find({ projectId })) {
    forgetCollection(app, collection);
  }
  const prefix = documentsPrefix(projectId);
  for (const name of await app.db.listNames()) {
    if (name.startsWith(prefix)) await app.db.collection(name).drop();
  }
  await collectionStore(app).deleteMany({ projectId });
}
