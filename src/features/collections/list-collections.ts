import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { Collection } from './collection.js';
import { collectionStore } from './collection-store.js';

/** All active collections of a project by name. */
export function listCollections(app: Pick<App, 'db'>, projectId: ObjectId): Promise<Collection[]> {
  return collectionStore(app).find({ projectId, state: 'active' }).sort({ name: 1 }).toArray() as Promise<Collection[]>;
}
