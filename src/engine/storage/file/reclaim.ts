import type { Storage } from '../storage.js';

const CHUNK = 256;
/** Drops that are looked up at a time. */
const DROPS = 64;

const running = new WeakMap<Storage, Promise<void>>();

/**
 * Frees the space of dropped collections and indexes, in batches, one after the other in a process; several processes
 * may do it at once. Resolves when nothing is left.
 */
export function reclaimDropped(storage: Storage): Promise<void> {
  let work = running.get(storage);
  if (work === undefined) {
    work = reclaim(storage);
    running.set(storage, work);
  }
  return work;
}

async function reclaim(storage: Storage): Promise<void> {
  // It must not end before it is noted.
  await Promise.resolve();
  try {
    for (;;) {
      storage.refresh();
      if (storage.catalog.discarded(1).length === 0) return;
      await storage.reserve.use(() =>
        storage.queue.write(() => {
          removeSome(storage);
        }),
      );
    }
  } finally {
    // In the moment in which nothing was left: what is dropped later begins it again.
    running.delete(storage);
  }
}

/** As much as fits into one transaction. */
function removeSome({ queue, environment, catalog }: Storage): void {
  for (const prefix of catalog.discarded(DROPS)) {
    const end = Buffer.concat([prefix, Buffer.from([0xff])]);
    for (let left = CHUNK; left === CHUNK;) {
      const keys = [...environment.store.getKeys({ start: prefix, end, limit: CHUNK })];
      for (const key of keys) queue.remove(key);
      left = keys.length;
      if (left < CHUNK) catalog.reclaimed(prefix);
      if (queue.expired()) return;
    }
  }
}
