import type { ObjectId } from 'bson';
import type { Migration } from './migration.js';

interface StoredRequest {
  _id: string;
  ids?: ObjectId[];
  /** The answer as JSON, of documents or mails. */
  answer?: string | null;
  /** Mails alone have it. */
  leaseUntil?: Date;
}

const FEW_IDS_BYTES = 512;
const MANY_IDS_BYTES = 2_048;

/**
 * Requests with an Idempotency-Key are counted by project and size, and of those that store documents no answer is
 * kept any more: only their ids, and whether they were carried out.
 */
export const keepIdsOfRepeatedRequests: Migration = {
  id: '023-keep-ids-of-repeated-requests',
  async up(db) {
    const requests = db.collection<StoredRequest & { isDone?: boolean; size?: number }>('idempotency_keys');
    const documents = { leaseUntil: { $exists: false }, isDone: { $exists: false } };
    await requests.updateMany({ ...documents, answer: { $type: 'string' } }, { $set: { isDone: true } });
    await requests.updateMany(documents, { $set: { isDone: false } });
    await requests.updateMany({ leaseUntil: { $exists: false } }, { $unset: { answer: '' } });
    await requests.updateMany(
      { size: { $exists: false }, 'ids.5': { $exists: false } },
      { $set: { size: FEW_IDS_BYTES } },
    );
    await requests.updateMany({ size: { $exists: false } }, { $set: { size: MANY_IDS_BYTES } });
    await db.createIndexes('idempotency_keys', [{ key: { projectId: 1, size: 1 }, name: 'project_size' }]);
  },
};
