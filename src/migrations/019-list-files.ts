import type { Migration } from './migration.js';

/** Operators list the files of a project, the newest first, and the deliveries of all its webhooks in one state. */
export const indexFileLists: Migration = {
  id: '019-list-files',
  async up(db) {
    await db.createIndexes('files', [{ key: { projectId: 1, state: 1, createdAt: -1, _id: -1 }, name: 'listing' }]);
    await db.createIndexes('webhook_deliveries', [
      { key: { projectId: 1, state: 1, createdAt: -1, _id: -1 }, name: 'project_log' },
    ]);
  },
};
