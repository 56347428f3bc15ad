import type { ObjectId } from 'bson';
import { storeOf } from '../../../platform/database/store-of.js';

/**
 * The record that earlier versions kept of a bulk insert under way; its one change from `open` decides whether the
 * batch stands. open: documents are being written, unseen. decided: they stand and are being published. abandoned: its
 * writer is gone, they are removed.
 */
export interface InsertBatch {
  _id: ObjectId;
  projectId: ObjectId;
  collectionId: ObjectId;
  ids: ObjectId[];
  state: 'open' | 'decided' | 'abandoned';
  createdAt: Date;
}

export const batchStore = storeOf<InsertBatch>('insert_batches');
