import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, forbidden } from '../../errors.js';
import { isDuplicateKey } from '../../platform/database/database.js';
import { requireUnreferred } from './references/require-sound-references.js';
import { requireUnnamed } from './rules/require-sound-rules.js';
import { requireCollectionName } from './require-collection-name.js';
import type { Collection } from './collection.js';
import { collectionNotFound, collectionStore, forgetCollection } from './collection-store.js';
import { USERS } from './users-collection.js';

/**
 * Gives a collection another name by one write; its documents stay where they are. 404, 409 when the name is taken or
 * rules name it, 403 for `users`.
 */
export async function renameCollection(
  app: App,
  projectId: ObjectId,
  name: string,
  newName: string,
): Promise<Collection> {
  if (name === USERS) throw forbidden('USERS_BLOCKED', 'The users collection cannot be renamed');
  requireCollectionName(newName);
  const current = await collectionStore(app).findOne({ projectId, name, state: 'active' });
  if (current) {
    await requireUnnamed(app, current, true);
    await requireUnreferred(app, current, true);
  }
  try {
    const renamed = await collectionStore(app).findOneAndUpdate(
      { projectId, name, state: 'active' },
      { $set: { name: newName, updatedAt: new Date(app.clock.now()) }, $inc: { version: 1 } },
      { returnDocument: 'after' },
    );
    if (!renamed) throw collectionNotFound(name);
    forgetCollection(app, { projectId, name });
    return renamed;
  } catch (error) {
    if (isDuplicateKey(error)) {
      throw conflict('COLLECTION_EXISTS', `There is already a collection "${newName}" in this project`);
    }
    throw error;
  }
}
