import { conflict, unavailable } from '../errors.js';
import type { Database } from '../platform/database/database.js';
import { findMoveMark } from '../platform/database/move-mark.js';
import { isHalfRestored } from '../platform/database/restore-mark.js';
import { requireEncryptionKeys } from '../platform/secrets/encryption-keys.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { findMigrationStatus, migrate, rejectNewerStore } from './migrate.js';

/**
 * Runs the migrations that an embedded store or an empty MongoDB waits for. A MongoDB with data in it is changed only
 * on request (409 MIGRATIONS_PENDING), as other versions may still be running on it. Refuses as migrateAlone.
 */
export async function requireMigrated(db: Database): Promise<void> {
  const status = await findMigrationStatus(db);
  rejectNewerStore(status);
  const { applied, pending } = status;
  if (pending.length === 0) return;
  // Processes that share an embedded store are known, and are asked to end.
  const isServer = db.isShared() && db.listOtherProcesses().length === 0;
  if (isServer && (applied.length > 0 || (await db.listNames()).length > 0)) {
    throw conflict(
      'MIGRATIONS_PENDING',
      `The stored data waits for ${numberOf(pending)}. Make a backup, then run "bsvc migrate".`,
    );
  }
  await migrateAlone(db);
}

/**
 * Runs the pending migrations and returns their ids. 503 STORE_SHARED while another process has the embedded store
 * open, which could not go on; 409 STORE_NEWER for a store that a newer version has changed.
 */
export async function migrateAlone(db: Database): Promise<string[]> {
  const { pending } = await findMigrationStatus(db);
  const others = db.listOtherProcesses();
  if (pending.length > 0 && others.length > 0 && (await holdsProjects(db))) {
    throw unavailable(
      'STORE_SHARED',
      `The store waits for ${numberOf(pending)}, which run when no other process has it open: end ${others.join(', ')} first.`,
    );
  }
  return migrate(db);
}

function numberOf(pending: string[]): string {
  return `${pending.length === 1 ? 'a migration' : `${pending.length} migrations`} (${pending.join(', ')})`;
}

/** Without one it is being made, by several processes at once or by one that was killed. */
async function holdsProjects(db: Database): Promise<boolean> {
  return (await db.collection('projects').findOne({}, { projection: { _id: 1 } })) !== null;
}

/**
 * Before anything is changed: 409 for half a store as rejectHalfStore says, and for one whose master key is not given
 * as requireEncryptionKeys says.
 */
export async function requireOwnStore({ db, secrets }: { db: Database; secrets: SecretBox }): Promise<void> {
  await rejectHalfStore(db);
  await requireEncryptionKeys({ db, secrets });
}

/** 409 for a store that a restore or a move has not finished with: RESTORE_UNFINISHED, MOVE_UNFINISHED. */
export async function rejectHalfStore(db: Database): Promise<void> {
  if (await isHalfRestored(db)) {
    throw conflict(
      'RESTORE_UNFINISHED',
      'A backup is being restored, or the restore was interrupted: run "bsvc restore" again with the same file.',
    );
  }
  const mark = await findMoveMark(db);
  if (!mark || mark.done) return;
  throw conflict(
    'MOVE_UNFINISHED',
    'A store is being moved into this database and may not be whole yet: stop serving the old one, unset MONGODB_URI and run "bsvc move-to" again.',
  );
}
