import { conflict } from '../errors.js';
import { type Database, unlessDuplicate } from '../platform/database/database.js';
import { SYSTEM_INDEXES } from './system-indexes.js';

/** One change of stored data. `up` may be run again after a crash in its middle: it must be harmless to repeat. */
export interface Migration {
  id: string;
  up(db: Database): Promise<void>;
}

/** In order, each one way. A released one is never edited. */
export const MIGRATIONS: readonly Migration[] = [
  {
    id: '001-baseline',
    async up(db) {
      for (const [name, indexes] of Object.entries(SYSTEM_INDEXES)) await db.createIndexes(name, [...indexes]);
    },
  },
];

interface MigrationRecord {
  _id: string;
  appliedAt: Date;
}

export interface MigrationStatus {
  applied: string[];
  pending: string[];
  /** Applied by a newer version: this one does not know what they changed. */
  unknown: string[];
}

/** Which of the known migrations this database has seen. */
export async function findMigrationStatus(db: Database, migrations = MIGRATIONS): Promise<MigrationStatus> {
  const records = await db.collection<MigrationRecord>('migrations').find({}).toArray();
  const seen = new Set(records.map((record) => record._id));
  const ids = migrations.map((migration) => migration.id);
  return {
    applied: ids.filter((id) => seen.has(id)),
    pending: ids.filter((id) => !seen.has(id)),
    unknown: [...seen].filter((id) => !ids.includes(id)).sort(),
  };
}

/**
 * 409 STORE_NEWER for a store that a newer version has changed: this one would read it wrongly, or write what the newer
 * one does not expect.
 */
export function rejectNewerStore({ unknown }: MigrationStatus): void {
  if (unknown.length === 0) return;
  throw conflict(
    'STORE_NEWER',
    `A newer bsvc has changed the stored data (${unknown.join(', ')}): start that version, or a later one. There is no way back but "bsvc restore" of a backup made before, with this version into a new data directory or database.`,
  );
}

/**
 * Runs the pending migrations in order and returns their ids. Several processes at once do no harm: every step can be
 * repeated. 409 STORE_NEWER.
 */
export async function migrate(db: Database, migrations = MIGRATIONS): Promise<string[]> {
  const status = await findMigrationStatus(db, migrations);
  rejectNewerStore(status);
  const { pending } = status;
  for (const migration of migrations) {
    if (!pending.includes(migration.id)) continue;
    await migration.up(db);
    const record = { _id: migration.id, appliedAt: new Date() };
    await unlessDuplicate(db.collection<MigrationRecord>('migrations').insertOne(record));
  }
  return pending;
}
