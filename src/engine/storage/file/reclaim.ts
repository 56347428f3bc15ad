import type { Storage } from '../storage.js';

const CHUNK = 256;

/** Frees the space of dropped collections and indexes, in batches; several processes may do it at once. */
export async function reclaimDropped(storage: Storage): Promise<void> {
  for (;;) {
    storage.refresh();
    const [prefix] = storage.catalog.discarded();
    if (prefix === undefined) return;
    while (await storage.reserve.use(() => storage.queue.write(() => removeSome(storage, prefix)))) {
      // Each round is a transaction of its own.
    }
  }
}

/** True when there may be more. */
function removeSome(storage: Storage, prefix: Buffer): boolean {
  const { queue, environment, catalog } = storage;
  const end = Buffer.concat([prefix, Buffer.from([0xff])]);
  do {
    const keys = [...environment.store.getKeys({ start: prefix, end, limit: CHUNK })];
    for (const key of keys) queue.remove(key);
    if (keys.length < CHUNK) {
      catalog.reclaimed(prefix);
      return false;
    }
  } while (!queue.expired());
  return true;
}
