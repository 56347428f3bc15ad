import type { App } from '../../../app.js';
import type { Store } from '../../../platform/database/database.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { requireRoomFor, type AddedBytes } from '../../quota/database-quota.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import type { OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument } from './document.js';
import { explainWriteError } from './refused-writes.js';
import { tellOf, type ChangedDocuments } from './tell-of.js';

interface DocumentWrite<T> {
  action: Action;
  /** What the project's quota is asked for; null = nothing: the write removes, or is the service's own small note. */
  adds: AddedBytes;
  /** Removals go on when the disk is full. */
  makesRoom?: boolean;
  run(stored: Store<StoredDocument>, nextEvent: () => Promise<OutboxEntry | null>): Promise<T>;
  changed(result: T): ChangedDocuments;
}

/**
 * The one way by which documents are written: asks the quota (403 QUOTA_EXCEEDED), gives the events that are stored
 * with the change, translates what the database refuses, and has followers and webhooks told of what was changed.
 */
export async function write<T>(app: App, collection: Collection, planned: DocumentWrite<T>): Promise<T> {
  if (planned.adds) await requireRoomFor(app, collection.projectId, planned.adds);
  const nextEvent = (): Promise<OutboxEntry | null> => queueEvents(app, collection, planned.action);
  const run = (): Promise<T> => planned.run(app.db.collection<StoredDocument>(documentsName(collection)), nextEvent);
  let result: T;
  try {
    result = await (planned.makesRoom ? app.db.useReserve(run) : run());
  } catch (error) {
    throw explainWriteError(error);
  }
  await tellOf(app, collection, planned.action, planned.changed(result));
  return result;
}
