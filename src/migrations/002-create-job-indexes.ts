import type { Migration } from './migration.js';

export const createJobIndexes: Migration = {
  id: '002-create-job-indexes',
  async up(db) {
    await db.createIndexes('jobs', [
      { key: { pool: 1, state: 1, priority: 1, runAt: 1, _id: 1 }, name: 'due' },
      { key: { state: 1, leaseUntil: 1 }, name: 'leases' },
      { key: { uniqueKey: 1 }, name: 'unique_key', unique: true, sparse: true },
      { key: { heldLane: 1 }, name: 'held_lane', unique: true, sparse: true },
      { key: { expireAt: 1 }, name: 'expiry', sparse: true },
    ]);
  },
};
