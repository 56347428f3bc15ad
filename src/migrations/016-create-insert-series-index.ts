import type { Migration } from './migration.js';

/** Finds the bulk inserts that were left behind, however many collections there are. */
export const createInsertSeriesIndex: Migration = {
  id: '016-create-insert-series-index',
  async up(db) {
    await db.createIndexes('insert_series', [{ key: { 'hidden.at': 1 }, name: 'hidden_at', sparse: true }]);
  },
};
