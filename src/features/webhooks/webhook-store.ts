import { hexOf } from '../../platform/hex-of.js';
import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import { storeOf } from '../../platform/database/store-of.js';
import { findObjectId } from '../../platform/ids.js';
import { type ProjectWebhooks, type Webhook, type WebhookSecret, SECRET_OVERLAP_MS } from './webhook.js';
import { openTarget, encryptTarget, encryptionContext } from './webhook-target.js';
import { cacheRegion } from '../../platform/cache.js';
import { generateWebhookSecret } from './deliveries/sign-delivery.js';
import type { EncryptedPlace } from '../../platform/secrets/reencrypt.js';
import type { Project } from '../projects/project.js';

const WEBHOOKS = 'project_webhooks';
/** The webhooks of a project, opened. */
interface OpenedWebhooks {
  revision: number;
  webhooks: Webhook[];
}

const CACHE = cacheRegion<OpenedWebhooks>('webhooks');

export const webhookStore = storeOf<ProjectWebhooks>(WEBHOOKS);

/** The webhooks of a project, at most half a second old. */
export async function listProjectWebhooks(app: App, projectId: ObjectId): Promise<readonly Webhook[]> {
  const key = hexOf(projectId);
  const known = await app.cache.read(CACHE, key, () => readProjectWebhooks(app, projectId));
  return known!.webhooks;
}

/** The webhook with that id, at most half a second old, or null. */
export async function findWebhook(app: App, projectId: ObjectId, id: string): Promise<Webhook | null> {
  return (await listProjectWebhooks(app, projectId)).find((webhook) => webhook.id.toHexString() === id) ?? null;
}

/** The stored webhook, not the remembered one; 404 when there is none. */
export async function requireWebhook(app: App, projectId: ObjectId, id: string): Promise<Webhook> {
  const { webhooks } = await readProjectWebhooks(app, projectId);
  const found = findObjectId(id) && webhooks.find((webhook) => webhook.id.toHexString() === id.toLowerCase());
  if (!found) throw webhookNotFound(id);
  return found;
}

/** An empty record stands for none, so that it too can be kept in the cache. */
export async function readProjectWebhooks(app: App, projectId: ObjectId): Promise<OpenedWebhooks> {
  const { revision = 0, webhooks = [] } = (await webhookStore(app).findOne({ _id: projectId })) ?? {};
  return { revision, webhooks: webhooks.map((webhook) => openTarget(app, projectId, webhook)) };
}

/**
 * Changes the list by compare-and-swap: changes made at once all take effect, and what `change` refuses holds for the
 * list as it then is.
 */
export async function changeWebhooks(
  app: App,
  projectId: ObjectId,
  change: (webhooks: readonly Webhook[]) => Webhook[],
): Promise<void> {
  for (;;) {
    const { revision, webhooks } = await readProjectWebhooks(app, projectId);
    const next = change(webhooks).map((webhook) => encryptTarget(app, projectId, webhook));
    if (await storeWebhooks(app, { _id: projectId, revision: revision + 1, webhooks: next })) break;
  }
  forgetWebhooks(app, projectId);
}

/** Drops this process's copy of a project's webhooks. */
export function forgetWebhooks(app: Pick<App, 'cache'>, projectId: ObjectId): void {
  app.cache.forget(CACHE, projectId.toHexString());
}

async function storeWebhooks(app: App, next: ProjectWebhooks): Promise<boolean> {
  const { _id, revision, webhooks } = next;
  if (revision > 1) {
    const result = await webhookStore(app).updateOne({ _id, revision: revision - 1 }, { $set: { revision, webhooks } });
    return result.matchedCount > 0;
  }
  return (await unlessDuplicate(webhookStore(app).insertOne(next))) !== null;
}

/** Changes one webhook and answers it as it is afterwards; 404 when it is gone. */
export async function changeWebhook(
  app: App,
  projectId: ObjectId,
  id: string,
  change: (webhook: Webhook) => Webhook,
): Promise<Webhook> {
  let changed: Webhook | undefined;
  await changeWebhooks(app, projectId, (webhooks) => {
    changed = undefined;
    const next = webhooks.map((webhook) =>
      webhook.id.toHexString() === id.toLowerCase() ? (changed = change(webhook)) : webhook,
    );
    if (!changed) throw webhookNotFound(id);
    return next;
  });
  return changed!;
}

export function webhookNotFound(id: string) {
  return missing('WEBHOOK_NOT_FOUND', `The project has no webhook ${id.slice(0, 64)}`);
}

/** A new secret: its value, to be shown once, and how it is stored, bound to this webhook. */
export function createWebhookSecret(
  app: Pick<App, 'secrets' | 'clock'>,
  projectId: ObjectId,
  webhookId: ObjectId,
): { value: string; secret: WebhookSecret } {
  const value = generateWebhookSecret();
  const encrypted = app.secrets.encrypt(value, encryptionContext(projectId, webhookId));
  return { value, secret: { encrypted, createdAt: new Date(app.clock.now()), expiresAt: null } };
}

/** The secrets that sign now, newest first. */
export function openLiveSecrets(app: Pick<App, 'secrets' | 'clock'>, projectId: ObjectId, webhook: Webhook): string[] {
  const nowMs = app.clock.now();
  return webhook.secrets
    .filter(({ expiresAt }) => expiresAt === null || expiresAt.getTime() > nowMs)
    .map(({ encrypted }) => app.secrets.decrypt(encrypted, encryptionContext(projectId, webhook.id)));
}

export const ENCRYPTED_WEBHOOK_SECRETS: EncryptedPlace = {
  collection: WEBHOOKS,
  fields: (record) => {
    const { _id, webhooks } = record as ProjectWebhooks;
    return webhooks.flatMap((webhook, at) => {
      const context = encryptionContext(_id, webhook.id);
      return [
        { path: `webhooks.${at}.target`, encrypted: webhook.target, context },
        ...webhook.secrets.map(({ encrypted }, index) => ({
          path: `webhooks.${at}.secrets.${index}.encrypted`,
          encrypted,
          context,
        })),
      ];
    });
  },
};

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
