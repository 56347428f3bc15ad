import type { Delivery } from './deliveries/delivery.js';
import { maskAddress } from '../../platform/secrets/mask-address.js';
import type { Webhook } from './webhook-store.js';

/** A webhook as HTTP and command line show it: never its secret. */
export function presentWebhook(webhook: Webhook) {
  return {
    id: webhook.id.toHexString(),
    url: webhook.url,
    /** Names alone: values are never shown. */
    headers: Object.keys(webhook.headers ?? {}),
    events: webhook.events,
    description: webhook.description,
    enabled: webhook.disabled === null,
    disabledReason: webhook.disabled,
    keepsWaiting: webhook.keepsWaiting ?? false,
    failingSince: webhook.failingSince?.toISOString() ?? null,
    createdAt: webhook.createdAt.toISOString(),
    updatedAt: webhook.updatedAt.toISOString(),
  };
}

/** A webhook for viewers: the host of its address, without the secrets needed to send to it. */
export function presentToViewer(webhook: Webhook) {
  return { ...presentWebhook(webhook), url: maskAddress(webhook.url) };
}

export function presentDelivery(delivery: Delivery) {
  return {
    id: delivery._id,
    webhookId: delivery.webhookId.toHexString(),
    eventId: delivery.eventId,
    event: delivery.event,
    collection: delivery.collection,
    documentId: delivery.documentId,
    state: delivery.state,
    nextAttemptAt: delivery.state === 'pending' ? delivery.dueAt.toISOString() : null,
    attempts: delivery.attempts.map((attempt) => ({ ...attempt, at: attempt.at.toISOString() })),
    createdAt: delivery.createdAt.toISOString(),
    updatedAt: delivery.updatedAt.toISOString(),
  };
}
