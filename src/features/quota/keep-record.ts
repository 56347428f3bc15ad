import type { Document, ObjectId } from 'bson';
import type { App } from '../../app.js';
import { useUp, type Uses } from './use-up.js';
import { requireRoomFor } from './database-quota.js';
import { storeOfKept, type KeptRecord } from './kept-records.js';

/**
 * Stores a record that the service keeps for a project when there is room for it, and uses up what it rests on. A
 * record whose `_id` is taken throws what the database says.
 */
export async function keepRecord<T extends Document & { projectId: ObjectId }>(
  app: App,
  kind: KeptRecord,
  record: T,
  uses: Uses | null = null,
): Promise<true> {
  await requireRoomFor(app, record.projectId, { kept: kind });
  const collection = storeOfKept(kind);
  if (uses) await useUp(app.db, uses, { collection, insert: record });
  else await app.db.collection(collection).insertOne(record);
  return true;
}
