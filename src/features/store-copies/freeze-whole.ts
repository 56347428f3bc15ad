import type { App } from '../../app.js';
import { AppError, conflict } from '../../errors.js';
import type { Database } from '../../platform/database/database.js';
import { openGivenNames } from '../collections/given-names.js';

/**
 * The data as of one moment, as `Database.freeze`. 409 STORE_DAMAGED names collections as their owners do, so that a
 * damaged store never becomes a copy that looks whole.
 */
export async function freezeWhole(app: App, dir: string, stop: AbortSignal): Promise<Database> {
  try {
    return await app.db.freeze(dir, stop);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'STORE_DAMAGED') throw error;
    throw conflict(error.code, (await openGivenNames(app))(error.message), { cause: error });
  }
}
