import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { collectionStore } from '../../collections/collection-store.js';
import type { Collection } from '../../collections/collection.js';
import { expiryCutoff, type Expire } from '../../collections/fields/expire.js';
import type { DecidedWrite } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { openRemoval, openTrashing } from '../store/state-writes.js';
import { commitEach } from './commit-each.js';

/** Documents whose removal is prepared at once. */
const BATCH = 100;

/**
 * Moves documents that have expired to the trash, or removes them for good, as their collection says, and returns their
 * number. One that others refer to with `restrict` stays until they let it go. May run anywhere, any time, twice at
 * once.
 */
export async function removeExpiredDocuments(app: App, stop?: AbortSignal): Promise<number> {
  let expired = 0;
  for await (const collection of collectionStore(app).find({ state: 'active', expire: { $type: 'object' } })) {
    if (collection.expire) expired += await expireIn(app, collection, collection.expire, stop);
    if (stop?.aborted) break;
  }
  return expired;
}

async function expireIn(
  app: App,
  collection: Collection,
  expire: Expire,
  stop: AbortSignal | undefined,
): Promise<number> {
  const { field, permanent } = expire;
  const cutoff = expiryCutoff(expire, app.clock.now());
  // Decided inside of the write again, as the moment may be another by then.
  const admit = (stored: StoredDocument | null): stored is StoredDocument => {
    const moment = stored?.isDeleted === false ? stored[field] : null;
    return moment instanceof Date && moment <= cutoff;
  };
  const open = permanent ? openRemoval : openTrashing;
  let expired = 0;
  const carryOut = async (ids: readonly ObjectId[]): Promise<void> => {
    const isHere = await collectionStore(app).findOne({
      _id: collection._id,
      state: 'active',
      version: collection.version,
    });
    if (!isHere) return;
    const writes: DecidedWrite[] = [];
    for (const id of ids) {
      writes.push({ collection, id, ...(await open(app, { collection, id, admit })) });
    }
    const refused = await commitEach(app, writes);
    expired += ids.length - refused.size;
    for (const at of ids.keys()) {
      if (!refused.has(at)) app.metrics.event('expired_documents', permanent ? 'removed' : 'trashed');
    }
  };
  let batch: ObjectId[] = [];
  const found = documentStore(app, collection)
    .find({ isDeleted: false, [field]: { $lte: cutoff } })
    .project<{ _id: ObjectId }>({ _id: 1 });
  for await (const { _id } of found) {
    if (stop?.aborted) return expired;
    if (batch.push(_id) < BATCH) continue;
    await carryOut(batch);
    batch = [];
  }
  if (batch.length > 0) await carryOut(batch);
  return expired;
}

export const removeExpiredDocumentsJob: JobDefinition<App> = {
  name: 'documents.removeExpired',
  retry: { delaysMs: [60_000] },
  async run(app, _payload, { signal, stopping }) {
    if (await isClockSteady(app)) await removeExpiredDocuments(app, AbortSignal.any([signal, stopping]));
  },
};
