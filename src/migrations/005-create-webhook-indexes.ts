import type { Migration } from './migration.js';

const PENDING = { state: 'pending' };

export const createWebhookIndexes: Migration = {
  id: '005-create-webhook-indexes',
  async up(db) {
    await db.createIndexes('webhook_deliveries', [
      { key: { webhookId: 1, dueAt: 1, lane: 1 }, name: 'due', partialFilterExpression: PENDING },
      { key: { webhookId: 1, lane: 1, seq: 1 }, name: 'lanes', partialFilterExpression: PENDING },
      { key: { dueAt: 1 }, name: 'forgotten', partialFilterExpression: PENDING },
      { key: { webhookId: 1, createdAt: -1, _id: -1 }, name: 'log' },
      { key: { expireAt: 1 }, name: 'expiry' },
    ]);
  },
};
