import type { Migration } from './migration.js';

const EXPIRES = { key: { expiresAt: 1 }, name: 'expiresAt' } as const;
const BY_PROJECT = { key: { projectId: 1 }, name: 'project' } as const;

export const createUserCollections: Migration = {
  id: '006-create-user-collections',
  async up(db) {
    await db.createIndexes('sessions', [{ key: { projectId: 1, userId: 1 }, name: 'project_user' }, EXPIRES]);
    await db.createIndexes('token_cutoffs', [
      { key: { projectId: 1, expiresAt: 1 }, name: 'project_expiresAt' },
      EXPIRES,
    ]);
    await db.createIndexes('one_time_codes', [BY_PROJECT, EXPIRES]);
    await db.createIndexes('login_failures', [BY_PROJECT, EXPIRES]);
    await db.createIndexes('social_attempts', [BY_PROJECT, EXPIRES]);
    await db.createIndexes('social_identities', [{ key: { projectId: 1, userId: 1 }, name: 'project_user' }]);
    await db.createIndexes('mail_outbox', [{ key: { to: 1, createdAt: -1 }, name: 'to_createdAt' }]);
  },
};
