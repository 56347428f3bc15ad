import { isDuplicateKey, type Database } from '../platform/database.js';
import { MIGRATIONS } from './index.js';

interface MigrationRecord {
  _id: string;
  appliedAt: Date;
}

export interface MigrationStatus {
  applied: string[];
  pending: string[];
}

/** Which of the known migrations this database has seen. */
export async function findMigrationStatus(db: Database): Promise<MigrationStatus> {
  const records = await db.collection<MigrationRecord>('migrations').find({}).toArray();
  const seen = new Set(records.map((record) => record._id));
  const ids = MIGRATIONS.map((migration) => migration.id);
  return { applied: ids.filter((id) => seen.has(id)), pending: ids.filter((id) => !seen.has(id)) };
}

/** Runs what is pending, in order, and tells what was run. Several processes at once do no harm: every step can be repeated. */
export async function migrate(db: Database): Promise<string[]> {
  const { pending } = await findMigrationStatus(db);
  for (const migration of MIGRATIONS) {
    if (!pending.includes(migration.id)) continue;
    await migration.up(db);
    try {
      await db.collection<MigrationRecord>('migrations').insertOne({ _id: migration.id, appliedAt: new Date() });
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
  }
  return pending;
}
