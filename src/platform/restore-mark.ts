import type { Database } from './database.js';

/** Holds one record while a restore is under way: a store with it is half of something. No part of any backup. */
export const RESTORES = 'restores';

/** True while a restore is under way, and after one that died. */
export async function isHalfRestored(db: Database): Promise<boolean> {
  return (await db.collection<{ _id: string }>(RESTORES).findOne({ _id: 'restore' })) !== null;
}

/** Sets the mark; dropping the collection takes it away. */
export async function markRestore(db: Database): Promise<void> {
  await db
    .collection<{ _id: string; startedAt: Date }>(RESTORES)
    .replaceOne({ _id: 'restore' }, { startedAt: new Date() }, { upsert: true });
}
