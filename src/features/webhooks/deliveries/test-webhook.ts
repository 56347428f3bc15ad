import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { attemptDelivery } from './attempt-delivery.js';
import { buildPing } from './build-delivery.js';
import { deliveryStore, type Delivery } from './delivery.js';
import { judgeAttempt } from './judge-attempt.js';
import { requireWebhook } from '../webhook-store.js';

/**
 * Sends `test.ping` at once, waits for the answer, and answers the delivery as logged. One try, also to a disabled
 * webhook, and without consequences for it. 404.
 */
export async function testWebhook(app: App, project: Project, id: string): Promise<Delivery> {
  const webhook = await requireWebhook(app, project._id, id);
  const ping = buildPing(project._id, webhook, app.clock.now());
  const { attempt, outcome } = await attemptDelivery(app, webhook, ping, ping.body);
  const delivered = judgeAttempt(outcome, 0, app.clock.now(), 0).kind === 'delivered';
  const delivery: Delivery = {
    ...ping,
    state: delivered ? 'delivered' : 'failed',
    claims: 1,
    failures: delivered ? 0 : 1,
    attempts: [attempt],
  };
  await deliveryStore(app).insertOne(delivery);
  return delivery;
}
