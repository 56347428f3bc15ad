import type { ObjectId } from 'bson';
import { SYSTEM } from '../../../platform/actor.js';
import type { App } from '../../../app.js';
import { takeTurns } from '../../../scheduler.js';
import { isDuplicateKey } from '../../../platform/database/database.js';
import { groupBy } from '../../../platform/group-by.js';
import { keepsChanges, notifyFollowers } from '../../changes/change-log.js';
import { appendChanges } from '../../changes/outbox-log.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { REMOVED } from '../../collections/indexes/document-indexes.js';
import { buildDelivery, buildPayload, type DocumentEvent } from '../deliveries/build-delivery.js';
import { enqueueDelivery } from '../deliveries/deliver-webhook.job.js';
import { deliveryStore, type Delivery } from '../deliveries/delivery.js';
import { buildPayloadRecord, payloadId, storePayloads, type Payload } from '../deliveries/payload.js';
import { findOutbox, OUTBOX_ENTRIES, OUTBOX_SEQ, OUTBOX_SINCE, type Outbox, type OutboxEntry } from './outbox-field.js';
import { coversEvent } from '../webhook-event.js';
import { listProjectWebhooks } from '../webhook-store.js';

/** A document as it is after some write, with what waits in it. */
interface RelayItem {
  collection: Collection;
  document: Record<string, unknown>;
  /** Set when the document was read after its change, and not answered by the write itself: when that was. */
  readAt?: Date;
  /** As it was before its last event, where the write itself has seen that. */
  before?: Record<string, unknown>;
}

type Waiting = RelayItem & { outbox: Required<Outbox> };

/**
 * Makes deliveries of the events in the documents, and entries in the log of changes, then takes the events out. All
 * may be repeated: a delivery's id comes from event and webhook, and a change may be delivered twice. An event's data
 * is its document as given here. Where that may hold later changes too, because a crash or a quick successor came
 * between, the payload says so.
 */
export async function relayDocuments(app: App, items: readonly RelayItem[]): Promise<void> {
  const waiting = items.flatMap((item): Waiting[] => {
    const outbox = findOutbox(item.document);
    return outbox ? [{ ...item, outbox }] : [];
  });
  const payloads = new Map<string, Payload>();
  const deliveries = new Map<string, Delivery>();
  const turn = takeTurns();
  for (const item of waiting) {
    await turn();
    for (const { payload, sent } of await buildDeliveries(app, item)) {
      // An entry met twice has its first, closest image of the document.
      if (!payloads.has(payload._id)) payloads.set(payload._id, payload);
      for (const delivery of sent) if (!deliveries.has(delivery._id)) deliveries.set(delivery._id, delivery);
    }
  }
  await storePayloads(app, [...payloads.values()]);
  await storeDeliveries(app, [...deliveries.values()]);
  const groups = [...groupBy(waiting, ({ collection }) => documentsName(collection)).values()];
  await Promise.all(groups.map((group) => logChanges(app, group)));
  await Promise.all(groups.map((group) => clearOutboxes(app, group)));
  await wakeDelivery(app, [...deliveries.values()]);
}

interface BuiltEvent {
  payload: Payload;
  sent: Delivery[];
}

async function buildDeliveries(app: App, item: Waiting): Promise<BuiltEvent[]> {
  const { collection, document, outbox, readAt } = item;
  const webhooks = (await listProjectWebhooks(app, collection.projectId)).filter(({ disabled }) => !disabled);
  const nowMs = app.clock.now();
  return outbox.outbox.flatMap(({ id, action, at, actor = SYSTEM }, index) => {
    const heardBy = webhooks.filter(({ events }) => coversEvent(events, collection.name, action));
    if (heardBy.length === 0) return [];
    const about = {
      id,
      action,
      at,
      actor,
      projectId: collection.projectId,
      collection: collection.name,
      documentId: String(document._id),
    };
    // Entries leave an outbox from its front only, so the last one always has the document's number.
    const seq = outbox.seq - (outbox.outbox.length - 1 - index);
    const isLast = index === outbox.outbox.length - 1;
    const later = isLast ? findLaterChange(document, at, readAt) : (readAt ?? outbox.outbox.at(-1)!.at);
    const body = buildPayload(about, document, { readAt: later, before: isLast ? item.before : undefined });
    const event: DocumentEvent = { ...about, seq, bodyBytes: Math.ceil(Buffer.byteLength(body) / heardBy.length) };
    const payload = buildPayloadRecord(app, payloadId({ ...about, eventId: id }), body, nowMs);
    return [{ payload, sent: heardBy.map((webhook) => buildDelivery(event, webhook, nowMs)) }];
  });
}

/**
 * The time of a later change without listeners, for a document that was changed after its last event; null for any
 * other. A change dates its document before its event.
 */
function findLaterChange(document: Record<string, unknown>, at: Date, readAt: Date | undefined): Date | null {
  const { updatedAt } = document;
  return updatedAt instanceof Date && updatedAt > at ? (readAt ?? updatedAt) : null;
}

/**
 * Stores deliveries in order, so that no event of a document is there before an earlier one; leaves existing ones as
 * they are.
 */
async function storeDeliveries(app: App, deliveries: readonly Delivery[]): Promise<void> {
  let rest = deliveries;
  while (rest.length > 0) {
    try {
      await deliveryStore(app).insertMany([...rest], { ordered: true });
      return;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      rest = rest.slice(((error as { insertedCount?: number }).insertedCount ?? 0) + 1);
    }
  }
}

/** One entry for each document, however many of its events are relayed. Where the engine logs by itself: none. */
async function logChanges(app: App, items: [Waiting, ...Waiting[]]): Promise<void> {
  const { collection } = items[0];
  if (app.db.changeLogs || !keepsChanges(app, collection)) return;
  const latest = new Map(items.map(({ document, outbox }) => [String(document._id), { document, outbox }]));
  const changed = [...latest.values()].map(({ document, outbox }) => {
    const { id, at } = outbox.outbox.at(-1)!;
    return { document, event: id, at, earlier: findEarlier(outbox.outbox) };
  });
  await appendChanges(app, collection, changed);
  notifyFollowers(app, collection);
}

/** More changes of one document in one entry are not distinguished. */
const MAX_EARLIER = 16;

/** What is known of the document before each of the events; null where that of one is unknown. */
function findEarlier(events: readonly OutboxEntry[]): Record<string, unknown>[] | null {
  const changes = events.filter(({ action }) => action !== 'insert');
  const known = changes.flatMap(({ held }) => (held ? [held] : []));
  return known.length === changes.length && known.length <= MAX_EARLIER ? known : null;
}

/**
 * Empties the outboxes that nothing was added to since, and removes the documents that waited only for that; from the
 * others takes just what was relayed.
 */
async function clearOutboxes(app: App, items: [Waiting, ...Waiting[]]): Promise<void> {
  const documents = app.db.collection<{ _id: ObjectId }>(documentsName(items[0].collection));
  const latest = [...new Map(items.map((item) => [String(item.document._id), item])).values()];
  const unchanged = ({ document, outbox }: Waiting) => ({ _id: document._id as ObjectId, [OUTBOX_SEQ]: outbox.seq });
  const result = await documents.bulkWrite(
    latest.map((item) =>
      item.document.isDeleted === REMOVED
        ? { deleteOne: { filter: unchanged(item) } }
        : { updateOne: { filter: unchanged(item), update: { $unset: { [OUTBOX_ENTRIES]: '', [OUTBOX_SINCE]: '' } } } },
    ),
    { ordered: false },
  );
  if (result.matchedCount + result.deletedCount === latest.length) return;
  for (const { document, outbox } of latest) {
    const relayed = outbox.outbox.map(({ id }) => id);
    await documents.updateOne(
      { _id: document._id as ObjectId },
      {
        $pull: { [OUTBOX_ENTRIES]: { id: { $in: relayed } } },
      },
    );
  }
}

async function wakeDelivery(app: App, deliveries: readonly Delivery[]): Promise<void> {
  const targets = new Map(deliveries.map((delivery) => [delivery.webhookId.toHexString(), delivery]));
  await Promise.all([...targets.values()].map((target) => enqueueDelivery(app, target)));
}

const BATCH = 200;
const ANY_TIME = [{ $gt: new Date(0) }];

/**
 * Relays what waits in the documents of a collection at this moment, of all writers, the oldest first; only what
 * waits since then when `since` has conditions, one after the other, and no further batch once `isOver`.
 */
export async function relayWaiting(
  app: App,
  collection: Collection,
  since: readonly object[] = ANY_TIME,
  isOver: () => boolean = () => false,
): Promise<void> {
  const documents = app.db.collection<Record<string, unknown>>(documentsName(collection));
  for (const condition of since) {
    for (;;) {
      const found = await documents
        .find({ [OUTBOX_SINCE]: condition })
        .sort({ [OUTBOX_SINCE]: 1 })
        .limit(BATCH)
        .toArray();
      const readAt = new Date(app.clock.now());
      await relayDocuments(
        app,
        found.map((document) => ({ collection, document, readAt })),
      );
      if (found.length < BATCH || isOver()) break;
    }
  }
}
