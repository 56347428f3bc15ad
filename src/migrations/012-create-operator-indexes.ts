import type { Migration } from './migration.js';

export const createOperatorIndexes: Migration = {
  id: '012-create-operator-indexes',
  async up(db) {
    await db.createIndexes('operators', [{ key: { email: 1 }, name: 'email', unique: true }]);
    await db.createIndexes('operator_sessions', [
      { key: { operatorId: 1 }, name: 'operator' },
      { key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 },
    ]);
  },
};
