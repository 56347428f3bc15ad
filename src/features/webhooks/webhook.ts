import type { ObjectId } from 'bson';
import { DAY_MS } from '../../platform/time/clock.js';

/** A signing secret, encrypted. During a rotation's overlap there are several; all of them sign. */
export interface WebhookSecret {
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
export type StoredWebhook = Omit<Webhook, 'url' | 'headers'> & { target: string };

/**
 * All webhooks of a project in one record: a plan's limit is kept by one conditional write, and a document's write
 * needs one read to know who listens.
 */
export interface ProjectWebhooks {
  _id: ObjectId;
  /** Grows with every change. */
  revision: number;
  webhooks: StoredWebhook[];
}

/** Keeps the project's record well below what one document may hold. */
export const MAX_WEBHOOKS = 1_000;
export const SECRET_OVERLAP_MS = DAY_MS;
export const FAILING_DAYS = 5;
