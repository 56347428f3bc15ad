import type { App } from '../../../app.js';
import { collectionStore } from '../../collections/collection-store.js';
import { removeTrashedRecords } from '../store/document-store.js';
import { DAY_MS } from '../../../platform/time/clock.js';

const BATCH = 500;

/** Documents trashed until this moment can no longer be recovered (rest-api.md 3.1). */
export function trashCutoff(app: Pick<App, 'clock' | 'config'>): Date {
  return new Date(app.clock.now() - app.config.trashDays * DAY_MS);
}

/**
 * Removes documents that have been in the trash of any collection for too long, in small batches, and returns their
 * number. May run anywhere, any time, twice at once.
 */
export async function purgeTrash(app: App, stop?: AbortSignal): Promise<number> {
  const cutoff = trashCutoff(app);
  let purged = 0;
  for await (const collection of collectionStore(app).find({ state: 'active' })) {
    let removed = BATCH;
    while (removed > 0 && !stop?.aborted) {
      removed = await removeTrashedRecords(app, collection, cutoff, BATCH);
      purged += removed;
    }
    if (stop?.aborted) break;
  }
  return purged;
}
