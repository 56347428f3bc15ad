import type { ObjectId } from 'bson';
import { missing, type AppError } from '../../../errors.js';
import { storeOf } from '../../../platform/database/database.js';
import type { Action } from '../webhook-event.js';

/** One try, as logged and shown. */
export interface DeliveryAttempt {
  at: Date;
  durationMs: number;
  /** null when there was no answer. */
  status: number | null;
  /** The beginning of the answer, at most 1 KiB. */
  response: string;
  /** Why it does not count as delivered. */
  error: string | null;
}

/**
 * One event on its way to one webhook.
 *
 * pending: is tried, or waits for `dueAt` · delivered · failed: refused for the last time, gone (410), or its webhook
 * was disabled or removed.
 */
export interface Delivery {
  /** `<event id>.<webhook id>`: however often an event is relayed, there is one. */
  _id: string;
  projectId: ObjectId;
  webhookId: ObjectId;
  /** Sent as `webhook-id`. */
  eventId: string;
  event: string;
  collection: string | null;
  action: Action | 'ping' | 'call';
  documentId: string | null;
  /**
   * Deliveries of one lane are tried one after the other, by `seq`: the document's id, or its own id where order does
   * not matter.
   */
  lane: string;
  seq: number;
  /** What a test event sends; others send the payload of their event. */
  body?: string;
  /** Its part of the bytes of the payload, which the event's webhooks share. */
  bodyBytes?: number;
  state: 'pending' | 'delivered' | 'failed';
  dueAt: Date;
  /**
   * Grows with everything that is written about attempts: an outcome is recorded only by a process that has seen the
   * last of it.
   */
  claims: number;
  /** Attempts noted as begun since the last recorded outcome. */
  unfinished: number;
  /** Attempts that failed; the retry schedule goes by it. */
  failures: number;
  attempts: DeliveryAttempt[];
  createdAt: Date;
  updatedAt: Date;
}

export const KEPT_ATTEMPTS = 30;

export const WEBHOOK_DELIVERIES = 'webhook_deliveries';
export const deliveryStore = storeOf<Delivery>(WEBHOOK_DELIVERIES);

export function deliveryId(eventId: string, webhookId: ObjectId): string {
  return `${eventId}.${webhookId.toHexString()}`;
}

export function deliveryMissing(): AppError {
  return missing('DELIVERY_NOT_FOUND', 'The webhook has no delivery with this id');
}
