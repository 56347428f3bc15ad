import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import { tellFollowers } from '../../changes/change-log.js';
import { queueEvents, relayLater, relayStoredLater } from '../../webhooks/outbox/queue-events.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument } from './document.js';

/**
 * Those documents that a write has changed: as written, with what a single one was before if that is known, or by their
 * ids; null = nobody is told of it.
 */
export type ChangedDocuments =
  { documents: readonly StoredDocument[]; before?: StoredDocument } | { ids: readonly ObjectId[] } | null;

/** Has followers and webhooks told of what a write has changed. */
export async function tellOf(
  app: App,
  collection: Collection,
  action: Action,
  changed: ChangedDocuments,
): Promise<void> {
  if (!changed) return;
  tellFollowers(app, collection);
  if ('documents' in changed) relayLater(app, collection, changed.documents, changed.before);
  else if (await queueEvents(app, collection, action)) relayStoredLater(app, collection, changed.ids);
}
