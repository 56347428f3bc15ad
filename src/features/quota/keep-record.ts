import type { Document, ObjectId } from 'bson';
import type { App } from '../../app.js';
import { requireRoomFor } from './database-quota.js';
import { storeOfKept, type KeptRecord } from './kept-records.js';

/**
 * Stores a record that the service keeps for a project when there is room for it. A record whose `_id` is taken throws
 * what the database says.
 */
export async function keepRecord<T extends Document & { projectId: ObjectId }>(
  app: App,
  kind: KeptRecord,
  record: T,
): Promise<true> {
  await requireRoomFor(app, record.projectId, { kept: kind });
  await app.db.collection(storeOfKept(kind)).insertOne(record);
  return true;
}
