import { once } from 'node:events';
import type { Database } from '../../src/platform/database/database.js';
import type { Context } from '../shell/context.js';

/**
 * Resolves when the process is asked to stop. A closed stdout does not count: a service goes on without a reader.
 * Rejects with STORE_REPLACED when its store is gone, with STORE_FAILED when a write has failed so that only a new
 * process can go on: whatever keeps the service running starts one.
 */
export async function waitForStop({ io: { stop } }: Context, db: Database): Promise<void> {
  if (stop.aborted) return;
  const gone = new Promise<never>((_, reject) => {
    db.onLost(reject);
  });
  await Promise.race([once(stop, 'abort'), gone]);
}
