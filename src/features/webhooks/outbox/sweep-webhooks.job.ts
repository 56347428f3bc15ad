import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { CLOCK_DOUBT_MS } from '../../../platform/time/clock.js';
import type { JobContext, JobDefinition } from '../../../platform/jobs/job.js';
import type { Collection } from '../../collections/collection.js';
import { collectionStore } from '../../collections/collection-store.js';
import { listCollections } from '../../collections/list-collections.js';
import { enqueueDelivery } from '../deliveries/deliver-webhook.job.js';
import { findNextDue } from '../deliveries/claim-delivery.js';
import { deliveryStore } from '../deliveries/delivery.js';
import { relayWaiting } from './relay-outbox.js';
import { webhookStore } from '../webhook-store.js';

/** Younger events are still in the hands of the process that wrote them. */
const LEFT_BEHIND_MS = 5_000;
const MAX_PAUSE_MS = 14 * 3_600_000;

/** Recovers after a crash: events still in their documents, and due deliveries without a job. */
export const sweepWebhooksJob: JobDefinition<App> = {
  name: 'webhooks.sweep',
  retry: { delaysMs: [5_000, 30_000], endless: true },
  async run(app, _payload, context) {
    await relayLeftovers(app, context);
    await wakeForgotten(app, context);
  },
};

async function relayLeftovers(app: App, context: JobContext): Promise<void> {
  for await (const { _id: projectId } of webhookStore(app).find({})) {
    // `users` too, which has no record of its own until it is edited.
    for (const collection of await listCollections(app, projectId)) {
      if (isOver(context)) return;
      await relayCollection(app, collection, context);
    }
  }
  if (app.db.changeLogs) return;
  // Their events fill the log of changes, whether or not a webhook listens.
  for await (const collection of collectionStore(app).find({ 'changes.on': true, state: 'active' })) {
    if (isOver(context)) return;
    await relayCollection(app, collection, context);
  }
}

async function relayCollection(app: App, collection: Collection, context: JobContext): Promise<void> {
  const nowMs = app.clock.now();
  // Also what was written by a clock that has been set back since.
  const since = [{ $lte: new Date(nowMs - LEFT_BEHIND_MS) }, { $gt: new Date(nowMs + CLOCK_DOUBT_MS) }];
  await relayWaiting(app, collection, since, () => isOver(context));
}

async function wakeForgotten(app: App, context: JobContext): Promise<void> {
  for await (const { _id: projectId, webhooks } of webhookStore(app).find({})) {
    for (const { id: webhookId, disabled, keepsWaiting } of webhooks) {
      if (isOver(context)) return;
      if (disabled && keepsWaiting) continue;
      await bringBackDeliveries(app, webhookId);
      const dueAt = await findNextDue(app, webhookId);
      if (dueAt && dueAt.getTime() <= app.clock.now() - LEFT_BEHIND_MS) {
        await enqueueDelivery(app, { projectId, webhookId });
      }
    }
  }
}

/**
 * The longest pause between two attempts is half a day: what is due later was put off before the clock was set back.
 */
async function bringBackDeliveries(app: App, webhookId: ObjectId): Promise<void> {
  const nowMs = app.clock.now();
  const putOff = { $gt: new Date(nowMs + MAX_PAUSE_MS + CLOCK_DOUBT_MS) };
  await deliveryStore(app).updateMany(
    { webhookId, state: 'pending', dueAt: putOff },
    { $set: { dueAt: new Date(nowMs) } },
  );
}

function isOver({ signal, stopping }: JobContext): boolean {
  return signal.aborted || stopping.aborted;
}
