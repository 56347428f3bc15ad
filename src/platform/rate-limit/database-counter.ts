import { CLOCKS_DIFFER_MS, type Clock } from '../time/clock.js';
import { isDuplicateKey, type Database, type Store, unlessDuplicate } from '../database/database.js';
import type { RateCounter } from './rate-counter.js';

const RATE_COUNTERS = 'rate_counters';

/** A window as stored; a TTL index removes it when it is over. */
export interface StoredWindow {
  _id: string;
  used: number;
  resetAt: Date;
  /** The grant of the last taker. */
  granted?: number;
}

/**
 * Windows stored without waiting for a majority: losing the last counts when a primary fails is better than every
 * request waiting for replicas.
 */
export function windowStore(db: Database): Store<StoredWindow> {
  return db.collection<StoredWindow>(RATE_COUNTERS, { writeConcern: { w: 1 } });
}

/** Counts in the database, for any number of machines: one atomic update for each take. */
export function openDatabaseCounter(db: Database, clock: Clock): RateCounter {
  const windows = windowStore(db);
  return {
    async take(key, want, rate) {
      const nowMs = clock.now();
      const fresh = new Date(nowMs + rate.windowMs);
      // A window that ends later was made before the clock was set back; one that ends a little later, by somebody
      // whose clock is a little ahead.
      const latest = new Date(fresh.getTime() + CLOCKS_DIFFER_MS);
      const update = [
        { $set: { live: { $and: [{ $gt: ['$resetAt', new Date(nowMs)] }, { $lte: ['$resetAt', latest] }] } } },
        {
          $set: {
            used: { $cond: ['$live', '$used', 0] },
            resetAt: { $cond: ['$live', '$resetAt', fresh] },
          },
        },
        { $set: { granted: { $max: [0, { $min: [want, { $subtract: [rate.count, '$used'] }] }] } } },
        { $set: { used: { $add: ['$used', '$granted'] } } },
        { $unset: 'live' },
      ];
      const stored = await updateOrInsert(windows, key, update);
      return {
        granted: stored.granted!,
        left: Math.max(0, rate.count - stored.used),
        resetMs: stored.resetAt.getTime(),
      };
    },
    async giveBack(key, uses, resetMs) {
      await windows.updateOne(
        { _id: key, resetAt: new Date(resetMs), used: { $gte: uses } },
        { $inc: { used: -uses } },
      );
    },
    async atLeast(known) {
      const nowMs = clock.now();
      const live = known.filter(({ resetMs }) => resetMs > nowMs);
      const writes = live.map(({ key, used, resetMs }) => ({
        updateOne: { filter: { _id: key }, update: raise(used, new Date(resetMs), new Date(nowMs)), upsert: true },
      }));
      // Of several that insert at once, all but one are told of a duplicate key: they find it the next time.
      for (let attempt = 1; writes.length > 0; attempt++) {
        try {
          await windows.bulkWrite(writes, { ordered: false });
          return;
        } catch (error) {
          if (!isDuplicateKey(error) || attempt === 3) throw error;
        }
      }
    },
    close: () => Promise.resolve(),
  };
}

function raise(used: number, resetAt: Date, now: Date): object[] {
  const isLive = { $gt: ['$resetAt', now] };
  return [
    {
      $set: {
        used: { $cond: [isLive, { $max: ['$used', used] }, used] },
        resetAt: { $cond: [isLive, '$resetAt', resetAt] },
      },
    },
  ];
}

/**
 * Updates the window or inserts it. Of several inserts at once all but one meet a duplicate key, and their next attempt
 * finds the window.
 */
async function updateOrInsert(windows: Store<StoredWindow>, key: string, update: object[]): Promise<StoredWindow> {
  for (;;) {
    const options = { upsert: true, returnDocument: 'after' } as const;
    const stored = await unlessDuplicate(windows.findOneAndUpdate({ _id: key }, update, options));
    if (stored) return stored;
  }
}
