import type { Migration } from './migration.js';

const DAYS = 24 * 60 * 60;

export const createMailCollections: Migration = {
  id: '004-create-mail-collections',
  async up(db) {
    await db.createIndexes('mail_logs', [
      { key: { projectId: 1, createdAt: -1, _id: -1 }, name: 'project_createdAt' },
      { key: { providerEmailId: 1 }, name: 'providerEmailId' },
      { key: { status: 1, createdAt: 1 }, name: 'queued', partialFilterExpression: { status: 'queued' } },
    ]);
    await db.createIndexes('mail_usage', [{ key: { projectId: 1 }, name: 'project' }]);
    await db.createIndexes('mail_templates', [
      { key: { projectId: 1, name: 1, scope: 1 }, name: 'project_name', unique: true },
    ]);
    await db.createIndexes('mail_events', [{ key: { seenAt: 1 }, name: 'forgotten', expireAfterSeconds: 30 * DAYS }]);
    await db.createIndexes('mail_outbox', [{ key: { createdAt: -1 }, name: 'createdAt' }]);
  },
};
