import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { createWebhookSecret } from './webhook-secret.js';
import { changeWebhook, requireWebhook } from './webhook-store.js';
import { SECRET_OVERLAP_MS, type Webhook, type WebhookSecret } from './webhook.js';

/** Gives a webhook a new secret, shown once; for 24 hours deliveries are signed with the old one too. 404. */
export async function rotateSecret(
  app: App,
  project: Project,
  id: string,
): Promise<{ webhook: Webhook; secret: string; previousExpiresAt: Date }> {
  const { id: webhookId } = await requireWebhook(app, project._id, id);
  const nowMs = app.clock.now();
  const { value, secret } = createWebhookSecret(app, project._id, webhookId);
  const previousExpiresAt = new Date(nowMs + SECRET_OVERLAP_MS);
  const webhook = await changeWebhook(app, project._id, id, (current) => ({
    ...current,
    secrets: [secret, ...current.secrets.filter(isLiveAt(nowMs)).map((old) => endBy(old, previousExpiresAt))],
    updatedAt: new Date(nowMs),
  }));
  return { webhook, secret: value, previousExpiresAt };
}

const isLiveAt =
  (nowMs: number) =>
  ({ expiresAt }: WebhookSecret): boolean =>
    expiresAt === null || expiresAt.getTime() > nowMs;

/** A secret that is already on its way out is not given more time by another rotation. */
function endBy(secret: WebhookSecret, end: Date): WebhookSecret {
  return { ...secret, expiresAt: secret.expiresAt && secret.expiresAt < end ? secret.expiresAt : end };
}
