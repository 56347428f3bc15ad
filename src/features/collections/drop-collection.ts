import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import { type Collection, documentsPrefix } from './collection.js';
import { collectionNotFound, collectionStore, forgetCollection } from './collection-store.js';
import { enqueueFinishDrop, removeDropped } from './finish-drop.job.js';
import { applySets } from './name-sets.js';
import { requireUnreferred } from './references/reference.js';
import { requireUnnamed } from './rules/require-sound-rules.js';
import { USERS } from './users-collection.js';

/**
 * Removes a collection and all its documents permanently. Unreachable from the first write on; what a crash leaves, or
 * a late writer makes again, goes within minutes. 404 for an unknown name, 403 for `users`, 409 NAMED_BY_RULE or
 * REFERRED_TO.
 */
export function dropCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  return app.db.useReserve(() => removeCollection(app, projectId, name));
}

async function removeCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  if (name === USERS) {
    throw forbidden('USERS_BLOCKED', 'The users collection belongs to every project and cannot be dropped');
  }
  const found = await collectionStore(app).findOne({ projectId, name });
  if (found?.state === 'active') {
    await requireUnnamed(app, found);
    await requireUnreferred(app, found);
  }
  if (found) await enqueueFinishDrop(app, found);
  const collection =
    found &&
    (await collectionStore(app).findOneAndUpdate(
      { _id: found._id, name },
      { $set: { state: 'dropping', updatedAt: new Date(app.clock.now()) } },
      { returnDocument: 'after' },
    ));
  if (!collection) throw collectionNotFound(name);
  forgetCollection(app, collection);
  if (collection.rules) await applySets(app, collection);
  await removeDropped(app, collection);
  return collection;
}

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
