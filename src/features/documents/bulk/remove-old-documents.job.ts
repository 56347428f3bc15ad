import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { collectionStore } from '../../collections/collection-store.js';
import type { Collection } from '../../collections/collection.js';
import { expiryCutoff, type Expire } from '../../collections/fields/expire.js';
import type { DecidedWrite } from '../store/commit-writes.js';
import { trashCutoff, type StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { startCascade } from '../store/referring-documents.js';
import { openRemoval, type Removal } from '../store/state-writes.js';
import { commitEach } from './commit-each.js';

/** Documents whose removal is prepared at once. */
const BATCH = 100;
/** Documents of a collection that may stay before a run leaves it. */
const MAX_KEPT = 1000;

/**
 * Moves documents that have expired to the trash, or removes them permanently, as their collection says, and returns
 * their number. One that others refer to with `restrict` stays until they let it go. May run anywhere, any time, twice
 * at once.
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
  const filter = { isDeleted: false, [field]: { $lte: cutoff } };
  // Decided inside of the write again, as the moment may be another by then.
  const admit = (stored: StoredDocument | null): stored is StoredDocument => {
    const moment = stored?.isDeleted === false ? stored[field] : null;
    return moment instanceof Date && moment <= cutoff;
  };
  const expired = await removeEach(app, collection, { filter, stop, admit, permanent });
  for (let each = 0; each < expired; each++) {
    app.metrics.event('expired_documents', permanent ? 'removed' : 'trashed');
  }
  return expired;
}

/**
 * Removes documents that have been in the trash of any collection for too long, and returns their number. What still
 * refers to them is updated and their files are deleted, without events. Safe to run concurrently.
 */
export async function purgeTrash(app: App, stop?: AbortSignal): Promise<number> {
  const until = trashCutoff(app);
  const filter = { isDeleted: true, deletedAt: { $lte: until } };
  // One that came back before stays.
  const admit = (stored: StoredDocument | null): stored is StoredDocument =>
    stored?.isDeleted === true && stored.deletedAt !== null && stored.deletedAt <= until;
  let purged = 0;
  for await (const collection of collectionStore(app).find({ state: 'active' })) {
    purged += await removeEach(app, collection, { filter, stop, admit, permanent: true, isUnseen: true });
    if (stop?.aborted) break;
  }
  return purged;
}

interface Removed extends Pick<Removal, 'admit' | 'permanent' | 'isUnseen'> {
  filter: Record<string, unknown>;
  stop: AbortSignal | undefined;
}

/** Removes each document that matches and may be, in batches of one transaction; their number. */
async function removeEach(app: App, collection: Collection, { filter, stop, ...how }: Removed): Promise<number> {
  const { _id, version } = collection;
  const documents = documentStore(app, collection);
  const kept: ObjectId[] = [];
  let before = new Set<string>();
  let removed = 0;
  // Those beyond are tried by the next run.
  while (kept.length < MAX_KEPT && !stop?.aborted) {
    const others = kept.length > 0 && { _id: { $nin: kept } };
    const page = documents.find({ ...filter, ...others }).project<{ _id: ObjectId }>({ _id: 1 });
    const ids = (await page.limit(BATCH).toArray()).map((found) => found._id);
    if (ids.length === 0 || !(await collectionStore(app).findOne({ _id, state: 'active', version }))) break;
    const cascade = startCascade();
    const writes: DecidedWrite[] = [];
    for (const id of ids) writes.push(await openRemoval(app, { collection, id, cascade, ...how }));
    const refused = await commitEach(app, writes);
    removed += ids.length - refused.size;
    // One that is met twice is kept for a reason that the filter does not say.
    kept.push(...ids.filter((id, at) => refused.has(at) || before.has(id.toHexString())));
    before = new Set(ids.map((id) => id.toHexString()));
  }
  return removed;
}

export const removeExpiredDocumentsJob: JobDefinition<App> = {
  name: 'documents.removeExpired',
  retry: { delaysMs: [60_000] },
  async run(app, _payload, { signal, stopping }) {
    if (await isClockSteady(app)) await removeExpiredDocuments(app, AbortSignal.any([signal, stopping]));
  },
};

export const purgeTrashJob: JobDefinition<App> = {
  name: 'documents.purgeTrash',
  retry: { delaysMs: [60_000, 300_000] },
  async run(app, _payload, { signal, stopping }) {
    if (await isClockSteady(app)) await purgeTrash(app, AbortSignal.any([signal, stopping]));
  },
};
