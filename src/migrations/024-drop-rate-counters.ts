import type { Migration } from './migration.js';

/** Rate limits are counted in memory or Redis: what the database counted is over within a window. */
export const dropRateCounters: Migration = {
  id: '024-drop-rate-counters',
  async up(db) {
    await db.collection('rate_counters').drop();
  },
};
