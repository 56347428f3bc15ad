import type { Clock } from '../time/clock.js';
import type { Database } from '../database/database.js';
import type { Logger } from '../observe/logger.js';
import { windowStore } from './database-counter.js';
import { openMemoryCounter } from './memory-counter.js';
import type { RateCounter } from './rate-counter.js';

const SAVE_MS = 5_000;
/** The share of a limit from which a count is saved: below it a restart loses nothing worth keeping. */
const SAVED_SHARE = 0.5;

/**
 * Counts in this process and saves every five seconds who is close to a limit, so that a restart does not set abusers
 * free. Reads what was saved at the first take.
 */
export function openSavedCounter(db: Database, clock: Clock, log: Logger): RateCounter {
  const counter = openMemoryCounter(clock);
  const windows = windowStore(db);
  let loading: Promise<void> | null = null;
  let loaded = false;
  let saving: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;

  const load = async (): Promise<void> => {
    try {
      for await (const { _id, used, resetAt } of windows.find({ resetAt: { $gt: new Date(clock.now()) } })) {
        counter.restore(_id, { used, limit: used, resetMs: resetAt.getTime() });
      }
    } catch (error) {
      log.warn({ err: error }, 'saved rate limits could not be read; counting begins again');
    }
    loaded = true;
    timer = setInterval(() => void save(), SAVE_MS);
    timer.unref();
  };

  const write = async (): Promise<void> => {
    const changed = counter.takeChanged(SAVED_SHARE);
    if (changed.length === 0) return;
    const writes = changed.map(([key, { used, resetMs }]) => ({
      updateOne: { filter: { _id: key }, update: { $set: { used, resetAt: new Date(resetMs) } }, upsert: true },
    }));
    await windows.bulkWrite(writes, { ordered: false });
  };
  const save = async (): Promise<void> => {
    // A slow database gets one save at a time.
    if (saving) return saving;
    saving = write().catch((error: unknown) => log.warn({ err: error }, 'rate limits could not be saved'));
    await saving;
    saving = null;
  };

  return {
    take(key, want, rate) {
      if (loaded) return counter.take(key, want, rate);
      return (loading ??= load()).then(() => counter.take(key, want, rate));
    },
    giveBack: (key, uses, resetMs) => counter.giveBack(key, uses, resetMs),
    async atLeast(known) {
      if (!loaded) await (loading ??= load());
      counter.atLeast(known);
    },
    async close() {
      await loading;
      clearInterval(timer);
      await saving;
      await save();
      await counter.close();
    },
  };
}
