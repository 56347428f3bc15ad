import { isDeepStrictEqual } from 'node:util';
import { hexOf } from '../../platform/ids.js';
import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { unlessDuplicate, storeOf } from '../../platform/database/database.js';
import type { Collection } from './collection.js';
import { defaultUsersCollection, USERS } from './users-collection.js';
import { cacheRegion } from '../../platform/cache.js';
import { accessWord } from './rules/collection-rules.js';

export const COLLECTIONS = 'collections';

export const collectionStore = storeOf<Collection>(COLLECTIONS);

/** The registered collection of that exact name, or null; at most half a second old. `users` is always there. */
export async function findCollection(app: App, projectId: ObjectId, name: string): Promise<Collection | null> {
  const key = cacheKey(projectId, name);
  return app.cache.read(REGISTERED, key, async (old) => {
    const stored = await collectionStore(app).findOne({ projectId, name, state: 'active' });
    // With an unchanged record stays what is derived from it: parsed rules, compiled shapes, references.
    if (old && isDeepStrictEqual(stored, old)) return old;
    return stored ?? (name === USERS ? defaultUsersCollection(projectId) : null);
  });
}

/** findCollection with 404 COLLECTION_NOT_FOUND when there is none. */
export async function requireCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  const collection = await findCollection(app, projectId, name);
  if (!collection) throw collectionNotFound(name);
  return collection;
}

/** The 404 for a name that no collection has. */
export function collectionNotFound(name: string): Error {
  return missing('COLLECTION_NOT_FOUND', `There is no collection "${name.slice(0, 64)}" in this project`);
}

/** findCollection from this process's copies alone; undefined when they lack it. */
export function peekCollection(app: App, projectId: ObjectId, name: string): Collection | undefined {
  return app.cache.peek(REGISTERED, cacheKey(projectId, name));
}

/** Straight from the database, for changes that build on what is stored now; `users` gets its record by this. */
export async function requireStoredCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  if (name === USERS) await storeDefaultUsers(app, projectId);
  const collection = await collectionStore(app).findOne({ projectId, name, state: 'active' });
  if (!collection) throw collectionNotFound(name);
  return collection;
}

async function storeDefaultUsers(app: App, projectId: ObjectId): Promise<void> {
  if (await collectionStore(app).findOne({ projectId, name: USERS })) return;
  await unlessDuplicate(collectionStore(app).insertOne(defaultUsersCollection(projectId)));
}

/** Changes the record of a collection as it was read; null where another writer has changed it since. */
export async function saveCollection(
  app: App,
  { _id, version }: Pick<Collection, '_id' | 'version'>,
  $set: Partial<Collection>,
): Promise<Collection | null> {
  const saved = await collectionStore(app).findOneAndUpdate(
    { _id, version, state: 'active' },
    { $set: { ...$set, updatedAt: new Date(app.clock.now()) }, $inc: { version: 1 } },
    { returnDocument: 'after' },
  );
  if (saved) forgetCollection(app, saved);
  return saved;
}

export function forgetCollection(app: App, collection: Pick<Collection, 'projectId' | 'name'>): void {
  app.cache.forget(REGISTERED, cacheKey(collection.projectId, collection.name));
  app.cache.forget(REFERRING, hexOf(collection.projectId));
}

/** The collections of a project whose documents refer to others with `onDelete`; at most half a second old. */
export async function listReferring(app: App, projectId: ObjectId): Promise<readonly Collection[]> {
  const referring = await app.cache.read(REFERRING, hexOf(projectId), () =>
    collectionStore(app)
      .find({
        projectId,
        state: 'active',
        $or: ['fields', 'fields.items'].map((path) => ({ [`${path}.onDelete`]: { $exists: true } })),
      })
      .toArray(),
  );
  return referring ?? [];
}

const REFERRING = cacheRegion<Collection[]>('referring');

const REGISTERED = cacheRegion<Collection>('collections');
const cacheKey = (projectId: ObjectId, name: string): string => `${hexOf(projectId)}:${name}`;

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
