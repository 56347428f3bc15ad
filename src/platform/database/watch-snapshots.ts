import type { Database } from './database.js';
import type { Logger } from '../observe/logger.js';

const LOOK_MS = 10_000;
const LONG_MS = 60_000;

const HELD =
  'A process has been reading from the same snapshot of the store for more than a minute, so the data file grows with every write: let the process go on (kill -CONT) or end it';

/**
 * Logs, once for each, the other processes that hold a snapshot of the embedded store for too long. Returns the
 * function that ends it.
 */
export function watchSnapshots(
  { db, log }: { db: Database; log: Logger },
  { lookMs = LOOK_MS, longMs = LONG_MS } = {},
): () => void {
  let told = new Set<number>();
  const timer = setInterval(() => {
    const held = db.listSnapshots().filter(({ pid, ageMs }) => ageMs > longMs && pid !== process.pid);
    for (const { pid, ageMs } of held) {
      if (!told.has(pid)) log.warn({ reader: pid, seconds: Math.round(ageMs / 1000) }, HELD);
    }
    told = new Set(held.map(({ pid }) => pid));
  }, lookMs);
  timer.unref();
  return () => clearInterval(timer);
}
