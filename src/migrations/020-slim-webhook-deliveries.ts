import type { Migration } from './migration.js';

/** Of what was due, what had expired, and of projects: each was written again when a delivery ended. */
const REPLACED = new Set(['forgotten', 'expiry', 'project_log']);

/** Payloads are kept once for each event; a delivery that waits has three entries in indexes instead of six. */
export const slimWebhookDeliveries: Migration = {
  id: '020-slim-webhook-deliveries',
  async up(db) {
    // Older versions of MongoDB take no two indexes of the same fields.
    await db.createIndexes('webhook_deliveries', [
      {
        key: { projectId: 1, createdAt: -1, _id: -1 },
        name: 'project_delivered',
        partialFilterExpression: { state: 'delivered' },
      },
      {
        key: { projectId: 1, state: 1, createdAt: -1, _id: -1 },
        name: 'project_failed',
        partialFilterExpression: { state: 'failed' },
      },
    ]);
    const deliveries = db.collection('webhook_deliveries');
    for (const { name } of await deliveries.indexes()) if (REPLACED.has(name!)) await deliveries.dropIndex(name!);
    await db.createIndexes('webhook_payloads', [{ key: { checkAt: 1 }, name: 'check' }]);
  },
};
