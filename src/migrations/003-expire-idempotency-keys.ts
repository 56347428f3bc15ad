import type { Migration } from './migration.js';

export const expireIdempotencyKeys: Migration = {
  id: '003-expire-idempotency-keys',
  async up(db) {
    await db
      .collection('idempotency_keys')
      .createIndexes([{ key: { expiresAt: 1 }, name: 'expiresAt', expireAfterSeconds: 0 }]);
  },
};
