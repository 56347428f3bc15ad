import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { keepsChanges } from '../../changes/change-log.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { generateEventId } from '../deliveries/build-delivery.js';
import { findOutbox, type OutboxEntry } from './outbox-field.js';
import { relayDocuments } from './relay-outbox.js';
import { coversEvent, type Action } from '../webhook-event.js';
import { listProjectWebhooks } from '../webhook-store.js';

/**
 * The event that a write must store with its change, or null when no webhook listens and no log is filled by it. A
 * webhook that another process registered counts within half a second.
 */
export async function queueEvents(
  app: App,
  collection: Pick<Collection, 'projectId' | 'name' | 'changes'>,
  action: Action,
): Promise<OutboxEntry | null> {
  const webhooks = await listProjectWebhooks(app, collection.projectId);
  const heard = webhooks.some(({ disabled, events }) => !disabled && coversEvent(events, collection.name, action));
  const logged = !app.db.changeLogs && keepsChanges(app, collection);
  return heard || logged ? { id: generateEventId(), action, at: new Date(app.clock.now()) } : null;
}

/** Queues the events in these documents for relay after the response. Best effort: the sweep picks up what is lost. */
export function relayLater(app: App, collection: Collection, documents: readonly Record<string, unknown>[]): void {
  for (const document of documents) {
    if (findOutbox(document)) {
      app.backgroundTasks.add('webhooks.relay', { collection, document }, (items) => relayDocuments(app, items));
    }
  }
}

/** relayLater for documents known by their ids only: reads them first. */
export function relayStoredLater(app: App, collection: Collection, ids: readonly ObjectId[]): void {
  app.backgroundTasks.add('webhooks.relayStored', { collection, ids }, async (items) => {
    for (const item of items) await relayStored(app, item.collection, item.ids);
  });
}

async function relayStored(app: App, collection: Collection, ids: readonly ObjectId[]): Promise<void> {
  const documents = app.db.collection<{ _id: ObjectId }>(documentsName(collection));
  const found = await documents.find({ _id: { $in: [...ids] } }).toArray();
  const readAt = new Date(app.clock.now());
  await relayDocuments(
    app,
    found.map((document) => ({ collection, document, readAt })),
  );
}
