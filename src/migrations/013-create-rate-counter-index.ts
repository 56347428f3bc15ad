import type { Migration } from './migration.js';

export const createRateCounterIndex: Migration = {
  id: '013-create-rate-counter-index',
  async up(db) {
    await db.createIndexes('rate_counters', [{ key: { resetAt: 1 }, name: 'resetAt', expireAfterSeconds: 0 }]);
  },
};
