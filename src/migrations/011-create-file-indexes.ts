import type { Migration } from './migration.js';

export const createFileIndexes: Migration = {
  id: '011-create-file-indexes',
  async up(db) {
    await db.createIndexes('files', [
      { key: { path: 1 }, name: 'path', unique: true },
      { key: { projectId: 1, state: 1 }, name: 'project_state' },
      { key: { dueAt: 1 }, name: 'due', sparse: true },
    ]);
  },
};
