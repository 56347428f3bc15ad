import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { Collection } from './collection.js';
import { collectionStore } from './collection-store.js';
import { defaultUsersCollection, USERS } from './users-collection.js';
import { accessWord } from './rules/collection-rules.js';

/** All active collections of a project by name, `users` among them. */
export async function listCollections(app: Pick<App, 'db'>, projectId: ObjectId): Promise<Collection[]> {
  const stored = await collectionStore(app).find({ projectId, state: 'active' }).toArray();
  const all = stored.some(({ name }) => name === USERS) ? stored : [...stored, defaultUsersCollection(projectId)];
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A collection as HTTP and command line show it. */
export function presentCollection(collection: Collection) {
  return {
    id: collection._id.toHexString(),
    name: collection.name,
    mode: collection.mode,
    fields: collection.fields,
    access: accessWord(collection),
    rls: collection.rls ? { enabled: true as const, ...collection.rls } : { enabled: false as const },
    ...(collection.rules && { rules: collection.rules }),
    indexes: collection.indexes,
    ...(collection.uniques?.length && { uniques: collection.uniques }),
    ...(collection.expire && { expire: collection.expire }),
    ...(collection.changes && { changes: collection.changes }),
    version: collection.version,
    createdAt: collection.createdAt.toISOString(),
    updatedAt: collection.updatedAt.toISOString(),
  };
}
