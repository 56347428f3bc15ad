import { conflict } from '../errors.js';
import type { Database } from '../platform/database.js';
import { findMigrationStatus, migrate } from './migrate.js';

/**
 * Makes sure that the stored data is that of this version. The embedded engine and an empty MongoDB are brought up to it;
 * a MongoDB with data in it is changed only on request (409 MIGRATIONS_PENDING), as other versions may still be running on it.
 */
export async function requireMigrated(db: Database): Promise<void> {
  const { applied, pending } = await findMigrationStatus(db);
  if (pending.length === 0) return;
  const untouched = applied.length === 0 && (await db.listNames()).length === 0;
  if (db.kind === 'mongodb' && !untouched) {
    throw conflict(
      'MIGRATIONS_PENDING',
      `The stored data waits for ${pending.length === 1 ? 'a migration' : `${pending.length} migrations`} (${pending.join(', ')}). Make a backup, then run "bsvc migrate".`,
    );
  }
  await migrate(db);
}
