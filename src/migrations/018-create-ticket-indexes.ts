import type { Migration } from './migration.js';

/** Removes tickets of streams by their end, and those of a project. */
export const createTicketIndexes: Migration = {
  id: '018-create-ticket-indexes',
  async up(db) {
    await db.createIndexes('stream_tickets', [
      { key: { expiresAt: 1 }, name: 'expiresAt' },
      { key: { projectId: 1 }, name: 'project' },
    ]);
  },
};
