import type { Migration } from './migration.js';

/** Mails that wait to be sent are counted by project and size. */
export const countWaitingMails: Migration = {
  id: '027-count-waiting-mails',
  async up(db) {
    const ofWaiting = { size: { $exists: true } };
    await db.createIndexes('mail_logs', [
      { key: { projectId: 1, size: 1 }, name: 'project_size', partialFilterExpression: ofWaiting },
    ]);
  },
};
