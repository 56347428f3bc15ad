import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { Project } from '../projects/project.js';
import { checkDescription, isOwnHandler, requireTargetUrl } from './add-webhook.js';
import { failPendingDeliveries } from './deliveries/claim-delivery.js';
import { enqueueDelivery } from './deliveries/deliver-webhook.job.js';
import { ofProject, parseEvents, waitingStore } from './webhook-event.js';
import {
  changeWebhook,
  checkHeaders,
  changeWebhooks,
  forgetWebhooks,
  readProjectWebhooks,
  webhookNotFound,
  webhookStore,
  type Webhook,
} from './webhook-store.js';
import type { ObjectId } from 'bson';
import { deliveryStore } from './deliveries/delivery.js';
import { removeProjectPayloads } from './deliveries/payload.js';

interface WebhookChanges {
  url?: string;
  /** Replaces the subscription. */
  events?: readonly unknown[];
  description?: string;
  /** Replaces all of them; an empty object removes them. */
  headers?: Readonly<Record<string, string>>;
  /** Enabling one that was disabled for its failures gives it a new start. */
  enabled?: boolean;
  /** What becomes of what still waits for one that is disabled: dropped unless it is kept until it is enabled again. */
  waiting?: 'keep' | 'drop';
}

/**
 * Changes a webhook by one write. 400 for a bad value or nothing to change, 404. Deliveries under way go to the new
 * address.
 */
export async function editWebhook(app: App, project: Project, id: string, changes: WebhookChanges): Promise<Webhook> {
  const $set: Partial<Webhook> = {};
  if (changes.events !== undefined) $set.events = parseEvents(changes.events);
  if (changes.url !== undefined) $set.url = await requireTargetUrl(app, changes.url);
  if (changes.description !== undefined) $set.description = checkDescription(changes.description);
  if (changes.headers !== undefined) $set.headers = checkHeaders(changes.headers);
  if (changes.enabled === true) Object.assign($set, { disabled: null, keepsWaiting: false, failingSince: null });
  if (changes.enabled === false) {
    Object.assign($set, { disabled: 'requested', keepsWaiting: changes.waiting === 'keep' });
  }
  if (changes.waiting !== undefined && changes.enabled !== false) {
    throw invalid('INVALID_BODY', '"waiting" goes with "enabled": false alone');
  }
  if (Object.keys($set).length === 0) throw invalid('INVALID_BODY', 'There is nothing to change');
  const changed = await changeWebhook(app, project._id, id, (webhook) => {
    if (isOwnHandler(webhook.url) && ($set.url ?? $set.events ?? $set.headers)) {
      throw invalid(
        'INVALID_BODY',
        'It is a handler of a file: "bsvc hook remove" and "bsvc hook add" say which, and of what',
      );
    }
    return { ...webhook, ...$set, updatedAt: new Date(app.clock.now()) };
  });
  if (changed.disabled && !changed.keepsWaiting) await failPendingDeliveries(app, changed.id);
  if (changes.enabled === true) await enqueueDelivery(app, { projectId: project._id, webhookId: changed.id });
  return changed;
}

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
  await waitingStore(app).deleteMany(ofProject(projectId));
  await removeProjectPayloads(app, projectId);
}
