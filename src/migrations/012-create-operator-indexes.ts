import type { Migration } from './migration.js';

export const createOperatorIndexes: Migration = {
  id: '012-create-operator-indexes',
  async up(db) {
    await db.collection('operators').createIndexes([{ key: { email: 1 }, name: 'email', unique: true }]);
    await db.collection('operator_sessions').createIndexes([
      { key: { operatorId: 1 }, name: 'operator' },
      { key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 },
    ]);
  },
};
