import type { App } from '../../../app.js';
import { keepsChanges } from '../../changes/change-log.js';
import type { Collection } from '../../collections/collection.js';
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
 * Queues the events in a document for relay after the response, with the image before the last of them if it is known.
 * Best effort: the sweep picks up what is lost.
 */
export function relayLater(
  app: App,
  collection: Collection,
  document: Record<string, unknown>,
  before: Record<string, unknown> | null,
): void {
  if (!findOutbox(document)) return;
  const item = { collection, document, ...(before && { before }) };
  app.backgroundTasks.add('webhooks.relay', item, (items) => relayDocuments(app, items));
}
