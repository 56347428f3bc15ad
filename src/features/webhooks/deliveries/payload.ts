import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { isDuplicateKey } from '../../../platform/database/database.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { DAY_MS } from '../../../platform/time/clock.js';
import type { Delivery } from './delivery.js';

/** The body of an event, stored once for all webhooks that get it. */
export interface Payload {
  /** `<project id>.<event id>` */
  _id: string;
  /** The bytes that are signed and sent, the same at every attempt. */
  body: string;
  /** When the sweep looks whether a delivery still needs it. */
  checkAt: Date;
}

export const WEBHOOK_PAYLOADS = 'webhook_payloads';
export const payloadStore = storeOf<Payload>(WEBHOOK_PAYLOADS);

/** Most are delivered by then: looked at once, not twice. */
const USUAL_DELIVERY_MS = 60_000;

/** How long a payload outlives its last delivery: a day, and never longer than the delivery. */
export function payloadKeptMs({ config }: Pick<App, 'config'>): number {
  return Math.min(DAY_MS, config.deliveriesKeepMs);
}

export function buildPayloadRecord(app: Pick<App, 'config'>, id: string, body: string, nowMs: number): Payload {
  return { _id: id, body, checkAt: new Date(nowMs + payloadKeptMs(app) + USUAL_DELIVERY_MS) };
}

export function payloadId({ projectId, eventId }: Pick<Delivery, 'projectId' | 'eventId'>): string {
  return `${projectId.toHexString()}.${eventId}`;
}

/** Stores payloads; those that are there already stay as they are. */
export async function storePayloads(app: App, payloads: readonly Payload[]): Promise<void> {
  if (payloads.length === 0) return;
  try {
    await payloadStore(app).insertMany([...payloads], { ordered: false });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

/** The bytes that a delivery sends; null when they are no longer kept. */
export async function readPayload(app: App, delivery: Delivery): Promise<string | null> {
  if (delivery.body !== undefined) return delivery.body;
  return (await payloadStore(app).findOne({ _id: payloadId(delivery) }))?.body ?? null;
}

/**
 * Keeps the payload of a delivery for another while, so that it can be sent again; false when it is gone. The sweep
 * removes only what is as it has seen it.
 */
export async function holdPayload(app: App, delivery: Delivery): Promise<boolean> {
  if (delivery.body !== undefined) return true;
  const checkAt = new Date(app.clock.now() + payloadKeptMs(app));
  const held = await payloadStore(app).updateOne({ _id: payloadId(delivery) }, { $set: { checkAt } });
  return held.matchedCount > 0;
}

/** Removes all payloads of a project. */
export async function removeProjectPayloads(app: App, projectId: ObjectId): Promise<void> {
  const prefix = projectId.toHexString();
  await payloadStore(app).deleteMany({ _id: { $gte: `${prefix}.`, $lt: `${prefix}/` } });
}
