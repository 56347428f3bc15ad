import type { Migration } from './migration.js';

/** Steps of sign-ins that wait to be finished, and passkeys: found by project, user and end. */
export const indexAccountChallenges: Migration = {
  id: '025-index-account-challenges',
  async up(db) {
    await db.createIndexes('account_challenges', [
      { key: { projectId: 1 }, name: 'project' },
      { key: { expiresAt: 1 }, name: 'expires' },
    ]);
    await db.createIndexes('passkeys', [{ key: { projectId: 1, userId: 1 }, name: 'user' }]);
  },
};
