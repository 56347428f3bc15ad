import type { App } from '../../../app.js';
import { conflict } from '../../../errors.js';
import type { Project } from '../../projects/project.js';
import { enqueueDelivery } from './deliver-webhook.job.js';
import { deliveryMissing, deliveryStore, type Delivery } from './delivery.js';
import { holdPayload } from './payload.js';
import { requireWebhook } from '../webhook-store.js';
import { attemptDelivery } from './attempt-delivery.js';
import { buildPing, endedBy } from './build-delivery.js';
import { judgeAttempt } from './record-attempt.js';

/**
 * Sends a delivery again, with the same `webhook-id` and a new retry schedule; one that still waits is tried at once
 * instead. A replay keeps no order with its document's other events and holds none of them up. 404; 409
 * WEBHOOK_DISABLED, PAYLOAD_REMOVED.
 */
export async function replayDelivery(app: App, project: Project, id: string, deliveryId: string): Promise<Delivery> {
  const webhook = await requireWebhook(app, project._id, id);
  if (webhook.disabled) throw conflict('WEBHOOK_DISABLED', 'The webhook is disabled: enable it first');
  const target = { _id: deliveryId, webhookId: webhook.id };
  const found = await deliveryStore(app).findOne(target);
  if (!found) throw deliveryMissing();
  if (!(await holdPayload(app, found))) {
    throw conflict(
      'PAYLOAD_REMOVED',
      'What this delivery sent is no longer kept, so it cannot be sent again: read the document as it is now',
    );
  }
  const now = new Date(app.clock.now());
  const due = { dueAt: now, updatedAt: now };
  const deliveries = deliveryStore(app);
  const replayed =
    (await deliveries.findOneAndUpdate(
      { ...target, state: { $in: ['delivered', 'failed'] } },
      { $set: { ...due, state: 'pending', lane: deliveryId, seq: 0, failures: 0, unfinished: 0 } },
      { returnDocument: 'after' },
    )) ??
    (await deliveries.findOneAndUpdate(
      { ...target, state: 'pending', unfinished: 0 },
      { $set: due },
      { returnDocument: 'after' },
    )) ??
    (await deliveries.findOne(target));
  if (!replayed) throw deliveryMissing();
  await enqueueDelivery(app, replayed);
  return replayed;
}

/**
 * Sends `test.ping` at once, waits for the answer, and answers the delivery as logged. One try, also to a disabled
 * webhook, and without consequences for it. 404.
 */
export async function testWebhook(app: App, project: Project, id: string): Promise<Delivery> {
  const webhook = await requireWebhook(app, project._id, id);
  const ping = buildPing(project._id, webhook, app.clock.now());
  const { attempt, outcome } = await attemptDelivery(app, webhook, ping, ping.body);
  const delivered = judgeAttempt(outcome, 0, app.clock.now(), 0).kind === 'delivered';
  const delivery: Delivery = { ...ping, ...endedBy(attempt, delivered) };
  await deliveryStore(app).insertOne(delivery);
  return delivery;
}
