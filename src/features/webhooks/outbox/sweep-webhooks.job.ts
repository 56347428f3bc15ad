import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { CLOCK_DOUBT_MS } from '../../../platform/time/clock.js';
import type { JobContext, JobDefinition } from '../../../platform/jobs/job.js';
import type { Collection } from '../../collections/collection.js';
import { collectionStore } from '../../collections/collection-store.js';
import { listCollections } from '../../collections/list-collections.js';
import { enqueueDelivery } from '../deliveries/deliver-webhook.job.js';
import { deliveryStore, type Delivery } from '../deliveries/delivery.js';
import { relayWaiting } from './relay-waiting.js';
import { webhookStore } from '../webhook-store.js';

/** Younger events are still in the hands of the process that wrote them. */
const LEFT_BEHIND_MS = 5_000;
const MAX_PAUSE_MS = 14 * 3_600_000;

/** Finds the leftovers of a crash: events that wait in their documents, and due deliveries that nobody works on. */
export const sweepWebhooksJob: JobDefinition<App> = {
  name: 'webhooks.sweep',
  retry: { delaysMs: [5_000, 30_000], endless: true },
  async run(app, _payload, context) {
    await relayLeftovers(app, context);
    await bringBackDeliveries(app);
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

/**
 * The longest pause between two attempts is half a day: what is due later was put off before the clock was set back.
 */
async function bringBackDeliveries(app: App): Promise<void> {
  const nowMs = app.clock.now();
  await deliveryStore(app).updateMany(
    { state: 'pending', dueAt: { $gt: new Date(nowMs + MAX_PAUSE_MS + CLOCK_DOUBT_MS) } },
    { $set: { dueAt: new Date(nowMs) } },
  );
}

async function wakeForgotten(app: App, context: JobContext): Promise<void> {
  const woken: ObjectId[] = [];
  while (!isOver(context)) {
    const [forgotten]: Delivery[] = await deliveryStore(app)
      .find({
        state: 'pending',
        dueAt: { $lte: new Date(app.clock.now() - LEFT_BEHIND_MS) },
        ...(woken.length > 0 && { webhookId: { $nin: [...woken] } }),
      })
      .sort({ dueAt: 1 })
      .limit(1)
      .toArray();
    if (!forgotten) return;
    await enqueueDelivery(app, forgotten);
    woken.push(forgotten.webhookId);
  }
}

function isOver({ signal, stopping }: JobContext): boolean {
  return signal.aborted || stopping.aborted;
}
