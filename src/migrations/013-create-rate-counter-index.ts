import type { Migration } from './migration.js';

export const createRateCounterIndex: Migration = {
  id: '013-create-rate-counter-index',
  async up(db) {
    await db
      .collection('rate_counters')
      .createIndexes([{ key: { resetAt: 1 }, name: 'resetAt', expireAfterSeconds: 0 }]);
  },
};
