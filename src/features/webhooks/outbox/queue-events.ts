import type { App } from '../../../app.js';
import { keepsChanges } from '../../changes/change-log.js';
import type { Collection } from '../../collections/collection.js';
import { generateEventId } from '../deliveries/build-delivery.js';
import { findOutbox, type OutboxEntry } from './outbox-field.js';
import { relayDocuments } from './relay-outbox.js';
import { coversEvent, type Action } from '../webhook-event.js';
import { listProjectWebhooks, peekProjectWebhooks, type Webhook } from '../webhook-store.js';

/**
 * Whether a write must store an event with its change: a webhook listens, or a log is filled by it. A webhook that
 * another process registered counts within half a second. A promise only when it takes time.
 */
export function isHeard(
  app: App,
  collection: Pick<Collection, 'projectId' | 'name' | 'changes'>,
  action: Action,
): boolean | Promise<boolean> {
  if (!app.db.changeLogs && keepsChanges(app, collection)) return true;
  const { projectId, name } = collection;
  const isHeardBy = (webhooks: readonly Webhook[]): boolean =>
    webhooks.some(({ disabled, events }) => !disabled && coversEvent(events, name, action));
  const known = peekProjectWebhooks(app, projectId);
  return known ? isHeardBy(known) : listProjectWebhooks(app, projectId).then(isHeardBy);
}

/** The event of a change. */
export function newEvent({ actor, clock }: App, action: Action): OutboxEntry {
  const by = actor.type === 'system' ? undefined : { actor };
  return { id: generateEventId(), action, at: new Date(clock.now()), ...by };
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
