import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { CLOCK_DOUBT_MS, DAY_MS } from '../../../platform/time/clock.js';
import type { Collection } from '../../collections/collection.js';
import { collectionStore } from '../../collections/collection-store.js';
import { seriesStore, type HiddenBatch, type InsertSeries } from '../../collections/indexes/insert-series.js';
import { publishPendingRecords, removeHiddenRecords, removePendingRecords } from '../store/document-store.js';
import { abandonBatch, forgetBatch } from './hidden-batch.js';
import { batchStore, type InsertBatch } from './insert-batch.js';

/** A bulk insert takes well under a second; one that is open for longer than this has lost its process. */
const ABANDONED_AFTER_MS = 30_000;
/**
 * A writer that was only asleep may still write after its batch was abandoned, so an abandoned batch is swept again for
 * a day.
 */
export const FORGOTTEN_AFTER_MS = DAY_MS;

/**
 * Undoes the bulk inserts whose process died in the middle, and finishes those that an earlier version had decided;
 * returns their number. One that cannot be settled delays no other. May run anywhere, any time, twice at once.
 */
export async function settleBatches(app: App): Promise<number> {
  const now = app.clock.now();
  const left = { $lte: new Date(now - ABANDONED_AFTER_MS) };
  // Begun by a clock that has been set back since.
  const doubted = { $gt: new Date(now + CLOCK_DOUBT_MS) };
  let settled = 0;
  const attempt = async (batch: ObjectId, settle: () => Promise<void>): Promise<void> => {
    try {
      await settle();
      settled++;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      app.log.error({ err: error, batch: String(batch) }, 'a bulk insert cannot be settled');
    }
  };
  for await (const series of seriesStore(app).find({ $or: [{ 'hidden.at': left }, { 'hidden.at': doubted }] })) {
    const { hidden } = series as InsertSeries;
    for (const batch of hidden) {
      const ageMs = now - batch.at.getTime();
      if (ageMs < ABANDONED_AFTER_MS && ageMs > -CLOCK_DOUBT_MS) continue;
      await attempt(batch.batch, () => undoBatch(app, series, batch, ageMs));
    }
  }
  // A decided batch stands: there is nothing to wait for.
  const old = batchStore(app).find({ $or: [{ state: 'decided' }, { createdAt: left }, { createdAt: doubted }] });
  for await (const batch of old) {
    await attempt(batch._id, () => settlePending(app, batch, now));
  }
  return settled;
}

async function undoBatch(app: App, series: InsertSeries, batch: HiddenBatch, ageMs: number): Promise<void> {
  // Its writer may have made it stand this very moment.
  if (!(await abandonBatch(app, series, batch.batch))) return;
  const collection = await findCollection(app, series._id);
  if (collection) await removeHiddenRecords(app, collection, batch);
  if (!collection || ageMs > FORGOTTEN_AFTER_MS) await forgetBatch(app, series, batch.batch);
}

async function findCollection(app: App, _id: ObjectId): Promise<Collection | null> {
  return await collectionStore(app).findOne({ _id });
}

async function settlePending(app: App, batch: InsertBatch, now: number): Promise<void> {
  const collection = await findCollection(app, batch.collectionId);
  if (!collection) {
    await batchStore(app).deleteOne({ _id: batch._id });
    return;
  }
  await batchStore(app).updateOne({ _id: batch._id, state: 'open' }, { $set: { state: 'abandoned' } });
  const { state } = (await batchStore(app).findOne({ _id: batch._id })) ?? { state: 'gone' };
  if (state === 'decided') {
    await publishPendingRecords(app, collection, batch.ids);
    await batchStore(app).deleteOne({ _id: batch._id, state });
  } else if (state === 'abandoned') {
    await removePendingRecords(app, collection, batch.ids);
    if (now - batch.createdAt.getTime() > FORGOTTEN_AFTER_MS) {
      await batchStore(app).deleteOne({ _id: batch._id, state });
    }
  }
}
