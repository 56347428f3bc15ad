import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { forbidden, missing } from '../../errors.js';
import { documentsName, type Collection } from './collection.js';
import { collectionStore, forgetCollection } from './collection-store.js';

/** Removes a collection and all its documents for good. Unreachable from the first write on; repeating it finishes what a crash left. 404 for an unknown name, 403 for `users`. */
export async function dropCollection(app: App, projectId: ObjectId, name: string): Promise<Collection> {
  if (name === 'users')
    throw forbidden('USERS_BLOCKED', 'The users collection belongs to every project and cannot be dropped');
  const collection = (await collectionStore(app).findOneAndUpdate(
    { projectId, name },
    { $set: { state: 'dropping', updatedAt: new Date(app.clock.now()) } },
    { returnDocument: 'after' },
  )) as Collection | null;
  if (!collection)
    throw missing('COLLECTION_NOT_FOUND', `There is no collection "${name.slice(0, 64)}" in this project`);
  forgetCollection(app, collection);
  await app.db.collection(documentsName(collection)).drop();
  await collectionStore(app).deleteOne({ _id: collection._id, state: 'dropping' });
  return collection;
}
