import type { Migration } from './migration.js';

/**
 * Mails are sent in turns by project: their jobs name it, and are found by it. Of those that wait already it is not
 * known.
 */
export const letMailTakeTurns: Migration = {
  id: '017-let-mail-take-turns',
  async up(db) {
    await db
      .collection('jobs')
      .updateMany({ pool: 'mail.deliver', party: { $exists: false } }, { $set: { party: 'unknown' } });
    await db.createIndexes('jobs', [
      {
        key: { pool: 1, state: 1, priority: 1, party: 1, runAt: 1, _id: 1 },
        name: 'turns',
        partialFilterExpression: { party: { $exists: true } },
      },
    ]);
  },
};
