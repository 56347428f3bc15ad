import { unavailable } from '../../../errors.js';

const MAX_ATTEMPTS = 3;
/** Code of the database for a read whose index or collection was dropped under way. */
const PLAN_KILLED = 175;

/**
 * What a read answers, read from its beginning once more where an index went away under it, as happens when rules or
 * indexes of a collection change: nothing of it has been sent. 503 BUSY when that goes on.
 */
export async function readAgain<T>(read: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read();
    } catch (error) {
      if ((error as { code?: unknown }).code !== PLAN_KILLED) throw error;
      if (attempt < MAX_ATTEMPTS) continue;
      const message = 'The indexes of the collection are changing: try again in a moment';
      throw unavailable('BUSY', message, { retryAfterSeconds: 1, cause: error });
    }
  }
}
