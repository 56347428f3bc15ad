import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict } from '../../errors.js';
import { isDuplicateKey } from '../../platform/database.js';
import { checkIndexSpecs } from './check-index-specs.js';
import { checkRls } from './check-rls.js';
import { documentsName, type Collection } from './collection.js';
import { collectionStore, forgetCollection, requireStoredCollection } from './collection-store.js';
import { applyIndexes, documentIndexes } from './document-indexes.js';
import { findDuplicates } from './find-duplicates.js';
import { checkUsersContract } from './users-collection.js';

export type CollectionSettings = Pick<Collection, 'mode' | 'fields' | 'rls' | 'indexes'>;

/**
 * Changes a collection's settings by compare-and-swap on its version: two changes at once both take effect, in some order.
 * New indexes exist before the record asks for them and old ones go after, so a crash in between costs nothing but an index too many.
 * 409 with the values that stand in the way when stored documents keep a field from being unique; then nothing has changed.
 */
export async function changeCollection(
  app: App,
  projectId: ObjectId,
  name: string,
  change: (current: Collection) => Partial<CollectionSettings> | Promise<Partial<CollectionSettings>>,
): Promise<Collection> {
  for (;;) {
    const current = await requireStoredCollection(app, projectId, name);
    const changed: Collection = { ...current, ...(await change(current)) };
    checkRls(changed);
    checkIndexSpecs(changed);
    checkUsersContract(changed);
    await buildIndexes(app, current, changed);
    const { mode, fields, rls, indexes } = changed;
    const saved = (await collectionStore(app).findOneAndUpdate(
      { _id: current._id, version: current.version, state: 'active' },
      { $set: { mode, fields, rls, indexes, updatedAt: new Date(app.clock.now()) }, $inc: { version: 1 } },
      { returnDocument: 'after' },
    )) as Collection | null;
    if (!saved) continue;
    forgetCollection(app, saved);
    await applyIndexes(app, saved);
    return saved;
  }
}

async function buildIndexes(app: App, current: Collection, changed: Collection): Promise<void> {
  try {
    await app.db.createIndexes(documentsName(changed), documentIndexes(changed));
  } catch (error) {
    const refused = (error as { code?: unknown }).code === CANNOT_CREATE_INDEX;
    if (!refused && !isDuplicateKey(error)) throw error;
    await applyIndexes(app, current);
    if (refused) throw uniqueRefused(changed.name, error);
    throw (await findDuplicates(app, changed)) ?? error;
  }
}

/** MongoDB's word for a unique index on a collection that is sharded by something else. */
const CANNOT_CREATE_INDEX = 67;

function uniqueRefused(name: string, cause: unknown): Error {
  const message = `MongoDB refuses the indexes of "${name}": a sharded collection can keep nothing unique but its shard key`;
  return conflict('INDEX_REFUSED', message, { cause });
}
