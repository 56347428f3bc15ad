import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { generateWebhookSecret } from './deliveries/sign-delivery.js';
import type { SealedPlace } from '../../platform/secrets/reseal.js';
import type { ProjectWebhooks, Webhook, WebhookSecret } from './webhook.js';
import { WEBHOOKS } from './webhook-store.js';
import { sealContext } from './webhook-target.js';

/** A new secret: its value, to be shown once, and how it is stored, bound to this webhook. */
export function createWebhookSecret(
  app: Pick<App, 'secrets' | 'clock'>,
  projectId: ObjectId,
  webhookId: ObjectId,
): { value: string; secret: WebhookSecret } {
  const value = generateWebhookSecret();
  const sealed = app.secrets.seal(value, sealContext(projectId, webhookId));
  return { value, secret: { sealed, createdAt: new Date(app.clock.now()), expiresAt: null } };
}

/** The secrets that sign now, newest first. */
export function openLiveSecrets(app: Pick<App, 'secrets' | 'clock'>, projectId: ObjectId, webhook: Webhook): string[] {
  const nowMs = app.clock.now();
  return webhook.secrets
    .filter(({ expiresAt }) => expiresAt === null || expiresAt.getTime() > nowMs)
    .map(({ sealed }) => app.secrets.open(sealed, sealContext(projectId, webhook.id)));
}

export const SEALED_WEBHOOK_SECRETS: SealedPlace = {
  collection: WEBHOOKS,
  fields: (record) => {
    const { _id, webhooks } = record as ProjectWebhooks;
    return webhooks.flatMap((webhook, at) => {
      const context = sealContext(_id, webhook.id);
      return [
        { path: `webhooks.${at}.target`, sealed: webhook.target, context },
        ...webhook.secrets.map(({ sealed }, index) => ({
          path: `webhooks.${at}.secrets.${index}.sealed`,
          sealed,
          context,
        })),
      ];
    });
  },
};
