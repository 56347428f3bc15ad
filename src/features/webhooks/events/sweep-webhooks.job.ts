import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { CLOCK_DOUBT_MS } from '../../../platform/time/clock.js';
import type { JobContext, JobDefinition } from '../../../platform/jobs/job.js';
import { enqueueDelivery } from '../deliveries/deliver-webhook.job.js';
import { findNextDue } from '../deliveries/claim-delivery.js';
import { deliveryStore } from '../deliveries/delivery.js';
import { relayWaiting } from './relay-events.js';
import { webhookStore } from '../webhook-store.js';

/** Younger deliveries are still in the hands of the process that made them. */
const LEFT_BEHIND_MS = 5_000;
const MAX_PAUSE_MS = 14 * 3_600_000;

/** Recovers after a crash: events of which no deliveries were made, and due deliveries without a job. */
export const sweepWebhooksJob: JobDefinition<App> = {
  name: 'webhooks.sweep',
  retry: { delaysMs: [5_000, 30_000], endless: true },
  async run(app, _payload, context) {
    await relayWaiting(app, () => isOver(context));
    await wakeForgotten(app, context);
  },
};

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
