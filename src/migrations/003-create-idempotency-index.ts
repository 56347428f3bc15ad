import type { Migration } from './migration.js';

export const createIdempotencyIndex: Migration = {
  id: '003-create-idempotency-index',
  async up(db) {
    await db.createIndexes('idempotency_keys', [{ key: { expiresAt: 1 }, name: 'expiresAt' }]);
  },
};
