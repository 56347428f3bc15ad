import type { ObjectId } from 'bson';
import { DAY_MS, versionTime } from '../../platform/time/clock.js';
import type { App } from '../../app.js';
import { invalid, missing } from '../../errors.js';
import { mapOf, text } from '../../platform/schema/schema.js';
import { findObjectId, hexOf } from '../../platform/ids.js';
import { storeOf } from '../../platform/database/database.js';
import { cacheRegion } from '../../platform/cache.js';
import { generateWebhookSecret } from './deliveries/sign-delivery.js';
import type { EncryptedPlace } from '../../platform/secrets/reencrypt.js';
import type { Project } from '../projects/project.js';

/** A signing secret, encrypted. During a rotation's overlap there are several; all of them sign. */
interface WebhookSecret {
  encrypted: string;
  createdAt: Date;
  /** After this moment it no longer signs; null = until it is rotated. */
  expiresAt: Date | null;
}

/** Why a webhook is disabled: by a user, because its receiver answered 410, or after days of failures. */
export type DisabledReason = 'requested' | 'gone' | 'failing';

export interface Webhook {
  id: ObjectId;
  url: string;
  /** Sent with each delivery; absent: none. */
  headers?: Record<string, string>;
  /** `*`, `<collection>.<action>`, `<collection>.*` or `*.<action>`. */
  events: string[];
  description: string;
  disabled: DisabledReason | null;
  /** While it is disabled: what waits goes out when it is enabled again, instead of being given up. */
  keepsWaiting?: boolean;
  /** Newest first. */
  secrets: WebhookSecret[];
  /** Since when no delivery has worked; null while they work. */
  failingSince: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

/** A webhook as it is stored, its address and headers encrypted. */
type StoredWebhook = Omit<Webhook, 'url' | 'headers'> & { target: string };

/**
 * All webhooks of a project in one record: a plan's limit is kept by one write, and a document's write needs
 * one read to know who listens.
 */
interface ProjectWebhooks {
  _id: ObjectId;
  webhooks: StoredWebhook[];
  updatedAt: Date;
}

/** Keeps the project's record well below what one document may hold. */
export const MAX_WEBHOOKS = 1_000;
const SECRET_OVERLAP_MS = DAY_MS;
export const FAILING_DAYS = 5;

const MAX_HEADERS = 10;
const MAX_VALUE_CHARACTERS = 2_048;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
/** Printable ASCII, as HTTP sends it. */
const HEADER_VALUE = /^[\x20-\x7e]*$/;
/** Set by the delivery itself, or by the connection. */
const OWN_HEADERS =
  /^(host|connection|content-(length|type|encoding)|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*|webhook-.*)$/i;

/** Headers of a webhook in a request or a file. */
export const HEADERS = {
  ...mapOf(text({ maxLength: MAX_VALUE_CHARACTERS })),
  maxProperties: MAX_HEADERS,
  description:
    'Headers to send with each delivery, such as `Authorization`. Their values are stored encrypted and never shown.',
};

/** Where a webhook's deliveries go, and with which headers. Both may hold secrets. */
type Target = Pick<Webhook, 'url' | 'headers'>;

/** 400 INVALID_HEADERS for headers that a delivery cannot send. */
export function checkHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS) {
    throw invalid('INVALID_HEADERS', `A webhook sends at most ${MAX_HEADERS} headers of its own`);
  }
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, 64));
    if (!HEADER_NAME.test(name)) throw invalid('INVALID_HEADERS', `${shown} is not the name of a header`);
    if (OWN_HEADERS.test(name)) throw invalid('INVALID_HEADERS', `The header ${shown} is set by the delivery itself`);
    if (seen.has(name.toLowerCase())) throw invalid('INVALID_HEADERS', `The header ${shown} is given twice`);
    if (!HEADER_VALUE.test(value) || value.trim() !== value || value.length > MAX_VALUE_CHARACTERS) {
      throw invalid(
        'INVALID_HEADERS',
        `The value of the header ${shown} must be printable ASCII without blanks at its ends`,
      );
    }
    seen.add(name.toLowerCase());
  }
  return Object.fromEntries(entries);
}

const encryptionContext = (projectId: ObjectId, webhookId: ObjectId): string =>
  `project:${projectId.toHexString()}:webhook:${webhookId.toHexString()}`;

/** The webhook as it is stored: the address may hold a token, and headers mostly do. */
function encryptTarget(app: Pick<App, 'secrets'>, projectId: ObjectId, webhook: Webhook): StoredWebhook {
  const { url, headers, ...rest } = webhook;
  const target: Target = { url, headers };
  return { ...rest, target: app.secrets.encrypt(JSON.stringify(target), encryptionContext(projectId, webhook.id)) };
}

export function openTarget(app: Pick<App, 'secrets'>, projectId: ObjectId, stored: StoredWebhook): Webhook {
  const { target, ...rest } = stored;
  return { ...rest, ...(JSON.parse(app.secrets.decrypt(target, encryptionContext(projectId, stored.id))) as Target) };
}

const WEBHOOKS = 'project_webhooks';
/** The webhooks of a project, opened. */
interface OpenedWebhooks {
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

/** listProjectWebhooks from this process's copies alone; undefined when they lack them. */
export function peekProjectWebhooks(app: App, projectId: ObjectId): readonly Webhook[] | undefined {
  return app.cache.peek(CACHE, hexOf(projectId))?.webhooks;
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
  return { webhooks: openAll(app, projectId, await webhookStore(app).findOne({ _id: projectId })) };
}

function openAll(app: App, projectId: ObjectId, stored: Partial<ProjectWebhooks> | null): Webhook[] {
  return (stored?.webhooks ?? []).map((webhook) => openTarget(app, projectId, webhook));
}

/** Changes made at once all take effect, and what `change` refuses holds for the list as it then is. */
export async function changeWebhooks(
  app: App,
  projectId: ObjectId,
  change: (webhooks: readonly Webhook[]) => Webhook[],
): Promise<void> {
  await app.db.transform(WEBHOOKS, projectId, (stored) => {
    const webhooks = change(openAll(app, projectId, stored));
    const updatedAt = versionTime(stored ?? {}, app.clock.now());
    return { _id: projectId, webhooks: webhooks.map((each) => encryptTarget(app, projectId, each)), updatedAt };
  });
  forgetWebhooks(app, projectId);
}

/** Drops this process's copy of a project's webhooks. */
export function forgetWebhooks(app: Pick<App, 'cache'>, projectId: ObjectId): void {
  app.cache.forget(CACHE, projectId.toHexString());
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
