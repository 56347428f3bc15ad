import type { Migration } from './migration.js';

/** Removes what is counted of mails to addresses by its end, and that of a project. */
export const createMailCountIndexes: Migration = {
  id: '021-create-mail-count-indexes',
  async up(db) {
    await db.createIndexes('mail_counts', [
      { key: { expiresAt: 1 }, name: 'expiresAt' },
      { key: { projectId: 1 }, name: 'project' },
    ]);
  },
};
