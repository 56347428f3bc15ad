import type { App } from '../../src/app.js';
import { addWebhook } from '../../src/features/webhooks/add-webhook.js';
import { deliveryStore, type Delivery } from '../../src/features/webhooks/deliveries/delivery.js';
import type { Webhook } from '../../src/features/webhooks/webhook-store.js';
import type { Project } from '../../src/features/projects/project.js';
import { drainJobs } from '../../src/worker.js';

/** A registered webhook with its secret. */
export async function buildWebhook(
  app: App,
  project: Project,
  url: string,
  events: string[] = ['*'],
): Promise<{ webhook: Webhook; secret: string }> {
  const { webhook, secret } = await addWebhook(app, project, { url, events });
  return { webhook, secret: secret! };
}

/** Lets everything happen that is due: events are relayed, deliveries attempted. */
export async function settleWebhooks(app: App): Promise<void> {
  await app.backgroundTasks.idle();
  await drainJobs(app);
}

export function listAllDeliveries(app: App): Promise<Delivery[]> {
  return deliveryStore(app).find({}).sort({ createdAt: 1, _id: 1 }).toArray() as Promise<Delivery[]>;
}

/** Without reading them: after hours of load there are many. */
export function countUndelivered(app: App): Promise<number> {
  return deliveryStore(app).countDocuments({ state: { $ne: 'delivered' } });
}
