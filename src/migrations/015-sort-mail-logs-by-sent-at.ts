import type { Migration } from './migration.js';

/** Logs of mails that were never sent had no `sentAt`; what the provider says of mails is looked up by the mail. */
export const sortMailLogsBySentAt: Migration = {
  id: '015-sort-mail-logs-by-sent-at',
  async up(db) {
    const logs = db.collection('mail_logs');
    await logs.updateMany({ sentAt: null }, [{ $set: { sentAt: '$createdAt' } }]);
    await db.createIndexes('mail_logs', [{ key: { projectId: 1, sentAt: -1, _id: -1 }, name: 'project_sentAt' }]);
    // Served the list by `createdAt`.
    for (const { name } of await logs.indexes()) if (name === 'project_createdAt') await logs.dropIndex(name);
    await db.createIndexes('mail_events', [{ key: { providerEmailId: 1 }, name: 'providerEmailId', sparse: true }]);
  },
};
