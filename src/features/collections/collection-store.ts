import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import type { Store } from '../../platform/database.js';
import type { Collection } from './collection.js';

export const COLLECTIONS = 'collections';

export function collectionStore(app: Pick<App, 'db'>): Store<Collection> {
  return app.db.collection<Collection>(COLLECTIONS);
}

/** The registered collection of that exact name, or null; at most half a second old. */
export async function findCollection(app: App, projectId: ObjectId, name: string): Promise<Collection | null> {
  const key = cacheKey(projectId, name);
  return (
    app.cache.peek<Collection>('collections', key) ??
    app.cache.read(
      'collections',
      key,
      () => collectionStore(app).findOne({ projectId, name, state: 'active' }) as Promise<Collection | null>,
    )
  );
}

/** As findCollection; 404 COLLECTION_NOT_FOUND when there is none. */
export async function requireCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  const collection = await findCollection(app, projectId, name);
  if (!collection)
    throw missing('COLLECTION_NOT_FOUND', `There is no collection "${name.slice(0, 64)}" in this project`);
  return collection;
}

/** Straight from the database, for changes that build on what is stored now. */
export async function requireStoredCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  const collection = await collectionStore(app).findOne({ projectId, name, state: 'active' });
  if (!collection)
    throw missing('COLLECTION_NOT_FOUND', `There is no collection "${name.slice(0, 64)}" in this project`);
  return collection as Collection;
}

export function forgetCollection(app: App, collection: Pick<Collection, 'projectId' | 'name'>): void {
  app.cache.forget('collections', cacheKey(collection.projectId, collection.name));
}

const cacheKey = (projectId: ObjectId, name: string): string => `${projectId.toHexString()}:${name}`;
