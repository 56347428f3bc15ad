import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { storeOf } from '../../../platform/database/database.js';
import { DAY_MS } from '../../../platform/time/clock.js';
import { deliveryId, deliveryStore, type Delivery } from './delivery.js';
import { groupBy } from '../../../platform/group-by.js';
import type { JobContext } from '../../../platform/jobs/job.js';
import { ofProject, waitingStore } from '../webhook-event.js';
import { readProjectWebhooks } from '../webhook-store.js';

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
  await payloadStore(app).deleteMany(ofProject(projectId));
}

const BATCH = 200;
/** Deliveries that are looked up at once, however many webhooks a project has. */
const LOOKED_UP = 2_000;

type Due = Pick<Payload, '_id' | 'checkAt'>;

/**
 * Removes the payloads that no delivery needs any more, of those that are due to be looked at; the others are looked at
 * again when they may be free.
 */
export async function dropPayloads(app: App, { signal, stopping }: JobContext): Promise<void> {
  while (!signal.aborted && !stopping.aborted) {
    const due = await payloadStore(app)
      .find({ checkAt: { $lte: new Date(app.clock.now()) } })
      .sort({ checkAt: 1 })
      .project<Due>({ checkAt: 1 })
      .limit(BATCH)
      .toArray();
    if (due.length === 0) return;
    for (const [project, payloads] of groupBy(due, ({ _id }) => _id.split('.')[0]!)) {
      await deleteUnneededPayloads(app, new ObjectId(project), payloads);
    }
  }
}

async function deleteUnneededPayloads(app: App, projectId: ObjectId, payloads: readonly Due[]): Promise<void> {
  // Deliveries to webhooks that are gone have gone with them.
  const { webhooks } = await readProjectWebhooks(app, projectId);
  const waiting = (await waitingStore(app).find(ofProject(projectId)).toArray()).flatMap(({ events }) => events);
  const atOnce = Math.max(1, Math.floor(LOOKED_UP / Math.max(1, webhooks.length)));
  for (let at = 0; at < payloads.length; at += atOnce) {
    const part = payloads.slice(at, at + atOnce);
    const needed = await findNeeded(
      app,
      part.flatMap(({ _id }) => webhooks.map(({ id }) => deliveryId(_id.split('.')[1]!, id))),
    );
    const laterMs = app.clock.now() + payloadKeptMs(app);
    for (const { id } of waiting) needed.set(id, new Date(laterMs));
    // One that was replayed since is not as it was seen.
    const writes = part.map(({ _id, checkAt }) => {
      const until = needed.get(_id.split('.')[1]!);
      return until
        ? { updateOne: { filter: { _id, checkAt }, update: { $set: { checkAt: until } } } }
        : { deleteOne: { filter: { _id, checkAt } } };
    });
    await app.db.useReserve(() => payloadStore(app).bulkWrite(writes, { ordered: false }));
  }
}

/** Until when the payloads of events are needed at least, by event; those that are not are missing. */
async function findNeeded(app: App, deliveries: string[]): Promise<Map<string, Date>> {
  const nowMs = app.clock.now();
  const keptMs = payloadKeptMs(app);
  const found = deliveryStore(app)
    .find({ _id: { $in: deliveries } })
    .project<{ eventId: string; state: string; updatedAt: Date }>({ eventId: 1, state: 1, updatedAt: 1 });
  const needed = new Map<string, Date>();
  for await (const { eventId, state, updatedAt } of found) {
    const until = (state === 'delivered' ? updatedAt.getTime() : nowMs) + keptMs;
    if (until <= nowMs) continue;
    needed.set(eventId, new Date(Math.max(until, needed.get(eventId)?.getTime() ?? 0)));
  }
  return needed;
}
