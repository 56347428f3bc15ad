import type { Document, ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { Transaction } from '../../platform/database/database.js';
import { requireRoomFor } from './database-quota.js';
import { storeOfServiceRecord, type ServiceRecord } from './service-records.js';

/** Uses something up that is good once, in a transaction with what it gives; throws where it was used already. */
export type Uses = (tx: Transaction) => void;

/**
 * Stores a record that the service keeps for a project when there is room for it, and uses up what it rests on. A
 * record whose `_id` is taken throws what the database says.
 */
export async function insertServiceRecord<T extends Document & { projectId: ObjectId }>(
  app: App,
  kind: ServiceRecord,
  record: T,
  uses: Uses | null = null,
): Promise<true> {
  await requireRoomFor(app, record.projectId, { kept: kind });
  const collection = storeOfServiceRecord(kind);
  if (uses) {
    await app.db.transaction((tx) => {
      uses(tx);
      tx.put(collection, record);
    });
  } else {
    await app.db.collection(collection).insertOne(record);
  }
  return true;
}
