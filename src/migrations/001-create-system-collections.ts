import type { Migration } from './migration.js';

export const createSystemCollections: Migration = {
  id: '001-create-system-collections',
  async up(db) {
    await db.createIndexes('projects', [
      { key: { name: 1 }, name: 'name', unique: true },
      { key: { 'keys.hash': 1 }, name: 'keys_hash', unique: true },
    ]);
    await db.createIndexes('collections', [{ key: { projectId: 1, name: 1 }, name: 'project_name', unique: true }]);
  },
};
