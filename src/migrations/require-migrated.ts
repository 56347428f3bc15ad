import { conflict } from '../errors.js';
import type { Database } from '../platform/database/database.js';
import { findMoveMark } from '../platform/database/move-mark.js';
import { isHalfRestored } from '../platform/database/restore-mark.js';
import { requireSealingKeys } from '../platform/secrets/sealing-keys.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { findMigrationStatus, migrate, refuseNewerStore } from './migrate.js';

/**
 * Makes sure that the stored data is that of this version. The embedded engine and an empty MongoDB are brought up to
 * it; a MongoDB with data in it is changed only on request (409 MIGRATIONS_PENDING), as other versions may still be
 * running on it. A store that a newer version has changed is refused (409 STORE_NEWER).
 */
export async function requireMigrated(db: Database): Promise<void> {
  const status = await findMigrationStatus(db);
  refuseNewerStore(status);
  const { applied, pending } = status;
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

/**
 * Before anything is changed: 409 for half a store as refuseHalfStore says, and for one whose master key is not given
 * as requireSealingKeys says.
 */
export async function requireOwnStore({ db, secrets }: { db: Database; secrets: SecretBox }): Promise<void> {
  await refuseHalfStore(db);
  await requireSealingKeys({ db, secrets });
}

/** 409 for a store that a restore or a move has not finished with: RESTORE_UNFINISHED, MOVE_UNFINISHED. */
export async function refuseHalfStore(db: Database): Promise<void> {
  if (await isHalfRestored(db)) {
    throw conflict(
      'RESTORE_UNFINISHED',
      'A backup is being restored, or the restore was interrupted: run "bsvc restore" again with the same file.',
    );
  }
  if (db.kind !== 'mongodb') return;
  const mark = await findMoveMark(db);
  if (!mark || mark.done) return;
  throw conflict(
    'MOVE_UNFINISHED',
    'A store is being moved into this database and may not be whole yet: stop serving the old one, unset MONGODB_URI and run "bsvc move-to" again.',
  );
}
