import type { App } from '../../../app.js';
import { takeTurns } from '../../../scheduler.js';
import type { WriteTurn } from '../../../platform/database/database.js';
import { buildDelivery } from '../deliveries/build-delivery.js';
import { enqueueDelivery } from '../deliveries/deliver-webhook.job.js';
import { WEBHOOK_DELIVERIES, type Delivery } from '../deliveries/delivery.js';
import { coversEvent, waitingStore, WEBHOOK_EVENTS, type WaitingEvent, type WaitingEvents } from '../webhook-event.js';
import { listProjectWebhooks, type Webhook } from '../webhook-store.js';

/** Documents whose events are looked up at once. */
const BATCH = 200;
/** Deliveries of one transaction, or those of one event. */
const MAX_DELIVERIES = 200;

/** Makes the deliveries of all events that wait at this moment; begins no further batch once `isOver`. */
export async function relayWaiting(app: App, isOver: () => boolean = () => false): Promise<void> {
  while (!isOver()) {
    const found = await waitingStore(app).find({}).sort({ _id: 1 }).limit(BATCH).toArray();
    await relayEvents(app, found);
    if (found.length < BATCH) return;
  }
}

/**
 * Makes the deliveries of events that were seen to wait: each once, however many processes do so at the same time, and
 * of a document in the order of its events.
 */
export async function relayEvents(app: App, seen: readonly WaitingEvents[]): Promise<void> {
  const woken = new Map<string, Delivery>();
  const turn = takeTurns();
  let turns: WriteTurn[] = [];
  for (const waiting of latestOf(seen)) {
    const webhooks = (await listProjectWebhooks(app, waiting.projectId)).filter(({ disabled }) => !disabled);
    const atOnce = Math.max(1, Math.floor(MAX_DELIVERIES / Math.max(1, webhooks.length)));
    for (let from = 0; from < waiting.events.length; from += atOnce) {
      await turn();
      const events = waiting.events.slice(from, from + atOnce);
      const deliveries = events.flatMap((event) => buildDeliveries(app, waiting, event, webhooks));
      for (const delivery of deliveries) woken.set(delivery.webhookId.toHexString(), delivery);
      if (turns.length > 0 && turns.length + deliveries.length > MAX_DELIVERIES) {
        await app.db.transformTogether(turns);
        turns = [];
      }
      turns.push(...relayTurns(waiting._id, events, deliveries));
    }
  }
  if (turns.length > 0) await app.db.transformTogether(turns);
  await Promise.all([...woken.values()].map((delivery) => enqueueDelivery(app, delivery)));
}

/** Of each document what was seen last: events that are missing there were taken before. */
function latestOf(seen: readonly WaitingEvents[]): Iterable<WaitingEvents> {
  const latest = new Map<string, WaitingEvents>();
  for (const waiting of seen) {
    const known = latest.get(waiting._id);
    if (!known || known.events.at(-1)!.seq < waiting.events.at(-1)!.seq) latest.set(waiting._id, waiting);
  }
  return latest.values();
}

function buildDeliveries(
  app: App,
  { projectId, collection, documentId }: WaitingEvents,
  event: WaitingEvent,
  webhooks: readonly Webhook[],
): Delivery[] {
  const heardBy = webhooks.filter(({ events }) => coversEvent(events, collection, event.action));
  const bodyBytes = Math.ceil(event.bytes / heardBy.length);
  const about = { ...event, projectId, collection, documentId, bodyBytes };
  return heardBy.map((webhook) => buildDelivery(about, webhook, app.clock.now()));
}

/** Takes events of a document and stores the deliveries of those that nobody else has taken. */
function relayTurns(_id: string, events: readonly WaitingEvent[], deliveries: readonly Delivery[]): WriteTurn[] {
  const ids = new Set(events.map(({ id }) => id));
  let taken = new Set<string>();
  const taking: WriteTurn = {
    ...{ collection: WEBHOOK_EVENTS, id: _id },
    run(stored) {
      const waiting = (stored?.events ?? []) as WaitingEvent[];
      const left = waiting.filter(({ id }) => !ids.has(id));
      taken = new Set(waiting.flatMap(({ id }) => (ids.has(id) ? [id] : [])));
      if (taken.size === 0) return stored;
      return left.length > 0 ? { ...stored, events: left } : null;
    },
  };
  const storing = deliveries.map((delivery): WriteTurn => ({
    ...{ collection: WEBHOOK_DELIVERIES, id: delivery._id, isNew: true },
    run: (stored) => stored ?? (taken.has(delivery.eventId) ? { ...delivery } : null),
  }));
  return [taking, ...storing];
}
