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
  const logged = !app.db.changeLogs && keepsChanges(app, collection);
  if (!logged && !(await isHeard(app, collection, action))) return null;
  const { actor } = app;
  const by = actor.type === 'system' ? undefined : { actor };
  return { id: generateEventId(), action, at: new Date(app.clock.now()), ...by };
}

/** True if a webhook listens to an action on the documents of a collection. */
async function isHeard(
  app: App,
  { projectId, name }: Pick<Collection, 'projectId' | 'name'>,
  action: Action,
): Promise<boolean> {
  const webhooks = await listProjectWebhooks(app, projectId);
  return webhooks.some(({ disabled, events }) => !disabled && coversEvent(events, name, action));
}

/**
 * Queues the events in these documents for relay after the response, with the image before the last of them if it is
 * known. Best effort: the sweep picks up what is lost.
 */
export function relayLater(
  app: App,
  collection: Collection,
  documents: readonly Record<string, unknown>[],
  before?: Record<string, unknown>,
): void {
  for (const document of documents) {
    if (findOutbox(document)) {
      const item = { collection, document, before };
      app.backgroundTasks.add('webhooks.relay', item, (items) => relayDocuments(app, items));
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
