import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { deliveryStore } from './deliveries/delivery.js';
import { removeProjectPayloads } from './deliveries/payload.js';
import { changeWebhooks, forgetWebhooks, readProjectWebhooks, webhookNotFound, webhookStore } from './webhook-store.js';
import type { Webhook } from './webhook.js';

/** Removes a webhook with the log of its deliveries, and answers it as it was; 404. */
export async function removeWebhook(app: App, project: Project, id: string): Promise<Webhook> {
  let removed: Webhook | undefined;
  await changeWebhooks(app, project._id, (webhooks) => {
    removed = webhooks.find((webhook) => webhook.id.toHexString() === id.toLowerCase());
    if (!removed) throw webhookNotFound(id);
    return webhooks.filter((webhook) => webhook !== removed);
  });
  await deliveryStore(app).deleteMany({ webhookId: removed!.id });
  return removed!;
}

/**
 * Removes all of a project's webhooks with their logs, those of `known` ones too, when the project goes. Harmless to
 * repeat.
 */
export async function removeProjectWebhooks(app: App, projectId: ObjectId, known: readonly ObjectId[]): Promise<void> {
  const { webhooks } = await readProjectWebhooks(app, projectId);
  // First the list, so that nothing new is built for them.
  await webhookStore(app).deleteOne({ _id: projectId });
  forgetWebhooks(app, projectId);
  for (const id of [...known, ...webhooks.map((webhook) => webhook.id)]) {
    await deliveryStore(app).deleteMany({ webhookId: id });
  }
  await removeProjectPayloads(app, projectId);
}
