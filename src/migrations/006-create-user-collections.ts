import type { Migration } from './migration.js';

const EXPIRES = { key: { expiresAt: 1 }, name: 'expiresAt' } as const;
const BY_PROJECT = { key: { projectId: 1 }, name: 'project' } as const;

export const createUserCollections: Migration = {
  id: '006-create-user-collections',
  async up(db) {
    await db
      .collection('sessions')
      .createIndexes([{ key: { projectId: 1, userId: 1 }, name: 'project_user' }, EXPIRES]);
    await db
      .collection('token_cutoffs')
      .createIndexes([{ key: { projectId: 1, expiresAt: 1 }, name: 'project_expiresAt' }, EXPIRES]);
    await db.collection('one_time_codes').createIndexes([BY_PROJECT, EXPIRES]);
    await db.collection('login_failures').createIndexes([BY_PROJECT, EXPIRES]);
    await db.collection('social_attempts').createIndexes([BY_PROJECT, EXPIRES]);
    await db
      .collection('social_identities')
      .createIndexes([{ key: { projectId: 1, userId: 1 }, name: 'project_user' }]);
    await db.collection('mail_outbox').createIndexes([{ key: { to: 1, createdAt: -1 }, name: 'to_createdAt' }]);
  },
};
