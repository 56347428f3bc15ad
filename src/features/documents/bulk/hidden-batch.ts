import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, type AppError } from '../../../errors.js';
import { unlessDuplicate } from '../../../platform/database/database.js';
import type { Collection } from '../../collections/collection.js';
import { seriesStore, type HiddenBatch, type InsertSeries } from '../../collections/indexes/insert-series.js';
import { UNDER_WAY } from '../write/idempotency.js';

/** Code of the 409 for a bulk insert that was undone because it took too long. */
export const ABANDONED = 'BATCH_ABANDONED';

const OPEN_ATTEMPTS = 5;

/**
 * Takes the next number for a batch, which is hidden from now on. 409 when its first attempt is under way, or was
 * undone.
 */
export async function openBatch(app: App, collection: Collection, ids: ObjectId[]): Promise<number> {
  const batch = ids[0]!;
  const begun = {
    number: { $ifNull: ['$next', 1] },
    batch,
    ids,
    state: 'open',
    at: new Date(app.clock.now()),
  };
  const update = {
    $set: {
      projectId: collection.projectId,
      next: { $add: [{ $ifNull: ['$next', 1] }, 1] },
      hidden: { $concatArrays: [{ $ifNull: ['$hidden', []] }, [begun]] },
    },
  };
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
    const begin = seriesStore(app).findOneAndUpdate({ _id: collection._id, 'hidden.batch': { $ne: batch } }, [update], {
      upsert: true,
      returnDocument: 'after',
      projection: { hidden: { $elemMatch: { batch } } },
    });
    const series = await unlessDuplicate(begin);
    if (series) return series.hidden[0]!.number;
    const state = await findBatch(app, collection, batch);
    if (state === 'abandoned') throw batchAbandoned();
    if (state === 'open') throw underWay();
    // Somebody else's batch was the first of the collection at the same moment.
  }
  throw underWay();
}

/** The state of a batch that is hidden; null when it is not, or was never begun. */
export async function findBatch(
  app: App,
  { _id }: Pick<Collection, '_id'>,
  batch: ObjectId,
): Promise<HiddenBatch['state'] | null> {
  const projection = { hidden: { $elemMatch: { batch } } };
  const found = (await seriesStore(app).findOne({ _id }, { projection })) as Partial<InsertSeries> | null;
  return found?.hidden?.[0]?.state ?? null;
}

/** The one write by which a batch stands, for every reader at once; false when it was abandoned before. */
export async function showBatch(app: App, { _id }: Collection, batch: ObjectId): Promise<boolean> {
  const open = { _id, hidden: { $elemMatch: { batch, state: 'open' as const } } };
  return (await seriesStore(app).updateOne(open, { $pull: { hidden: { batch } } })).matchedCount === 1;
}

/**
 * The one write by which a batch can no longer come to stand; false when it stands. Its documents are to be removed
 * then.
 */
export async function abandonBatch(app: App, { _id }: Pick<Collection, '_id'>, batch: ObjectId): Promise<boolean> {
  const hidden = { _id, hidden: { $elemMatch: { batch } } };
  return (await seriesStore(app).updateOne(hidden, { $set: { 'hidden.$.state': 'abandoned' } })).matchedCount === 1;
}

/**
 * To be called when nobody writes documents of the abandoned batch any more and those that were written are removed.
 */
export async function forgetBatch(app: App, { _id }: Pick<Collection, '_id'>, batch: ObjectId): Promise<void> {
  await seriesStore(app).updateOne({ _id }, { $pull: { hidden: { batch, state: 'abandoned' } } });
}

export function batchAbandoned(): AppError {
  return conflict(ABANDONED, 'Storing the documents took too long and was undone: try again', { retryAfterSeconds: 1 });
}

function underWay(): AppError {
  return conflict(UNDER_WAY, 'The same request is still being carried out: try again in a moment', {
    retryAfterSeconds: 1,
  });
}
