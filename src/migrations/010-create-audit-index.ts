import type { Migration } from './migration.js';

const KEPT_SECONDS = 400 * 24 * 60 * 60;

export const createAuditIndex: Migration = {
  id: '010-create-audit-index',
  async up(db) {
    await db.createIndexes('audit_log', [{ key: { at: -1 }, name: 'at', expireAfterSeconds: KEPT_SECONDS }]);
  },
};
