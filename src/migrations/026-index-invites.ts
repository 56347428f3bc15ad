import type { Migration } from './migration.js';

/** Invitations: counted and listed by project, removed by their end. */
export const indexInvites: Migration = {
  id: '026-index-invites',
  async up(db) {
    await db.createIndexes('invites', [
      { key: { projectId: 1, createdAt: -1 }, name: 'project_created' },
      { key: { expiresAt: 1 }, name: 'expires' },
    ]);
  },
};
