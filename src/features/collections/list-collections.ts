import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { Collection } from './collection.js';
import { collectionStore } from './collection-store.js';
import { defaultUsersCollection, USERS } from './users-collection.js';

/** All active collections of a project by name, `users` among them. */
export async function listCollections(app: Pick<App, 'db'>, projectId: ObjectId): Promise<Collection[]> {
  const stored = await collectionStore(app).find({ projectId, state: 'active' }).toArray();
  const all = stored.some(({ name }) => name === USERS) ? stored : [...stored, defaultUsersCollection(projectId)];
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}
