import type { App } from '../../app.js';
import { AppError } from '../../errors.js';
import { CLOCK_DOUBT_MS } from '../../platform/clock.js';
import type { Collection } from '../collections/collection.js';
import { collectionStore } from '../collections/collection-store.js';
import { publishPendingRecords, removePendingRecords } from './document-store.js';
import { batchStore, type InsertBatch } from './insert-batch.js';

/** A bulk insert takes well under a second; one that is open for longer than this has lost its process. */
const ABANDONED_AFTER_MS = 60_000;
/** A writer that was only asleep may still write after its batch was abandoned, so an abandoned batch is swept again for a day. */
const FORGOTTEN_AFTER_MS = 24 * 3_600_000;

/** Finishes or undoes the bulk inserts whose process died in the middle, and tells how many; one that cannot be finished keeps no other. May run anywhere, any time, twice at once. */
export async function settleBatches(app: App): Promise<number> {
  const now = app.clock.now();
  let settled = 0;
  const left = { $lte: new Date(now - ABANDONED_AFTER_MS) };
  // Begun by a clock that has been set back since.
  const doubted = { $gt: new Date(now + CLOCK_DOUBT_MS) };
  const old = batchStore(app).find({ $or: [{ createdAt: left }, { createdAt: doubted }] });
  for await (const batch of old) {
    try {
      await settleBatch(app, batch as InsertBatch, now);
      settled++;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      app.log.error({ err: error, batch: String(batch._id) }, 'a bulk insert cannot be published');
    }
  }
  return settled;
}

async function settleBatch(app: App, batch: InsertBatch, now: number): Promise<void> {
  const collection = (await collectionStore(app).findOne({ _id: batch.collectionId })) as Collection | null;
  if (!collection) {
    await batchStore(app).deleteOne({ _id: batch._id });
    return;
  }
  await batchStore(app).updateOne({ _id: batch._id, state: 'open' }, { $set: { state: 'abandoned' } });
  const { state } = ((await batchStore(app).findOne({ _id: batch._id })) as InsertBatch | null) ?? { state: 'gone' };
  if (state === 'decided') {
    await publishPendingRecords(app, collection, batch.ids);
    await batchStore(app).deleteOne({ _id: batch._id, state });
  } else if (state === 'abandoned') {
    await removePendingRecords(app, collection, batch.ids);
    if (now - batch.createdAt.getTime() > FORGOTTEN_AFTER_MS)
      await batchStore(app).deleteOne({ _id: batch._id, state });
  }
}
