import type { App } from '../../../app.js';
import type { Store } from '../../../platform/database/database.js';
import { takeTurns } from '../../../turns.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { withFolded } from '../../collections/fields/nocase.js';
import { requireRoomFor, type AddedBytes } from '../../quota/database-quota.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import { withOutbox, type OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
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

/** An insert of several documents, each with an event of its own; `run` is given them as they are stored. */
export async function writeNew<T>(
  app: App,
  collection: Collection,
  inserted: readonly StoredDocument[],
  planned: {
    run(stored: Store<StoredDocument>, documents: readonly StoredDocument[]): Promise<T>;
    changed(result: T, documents: readonly StoredDocument[]): ChangedDocuments;
  },
): Promise<T> {
  const documents = inserted.map((document) => withFolded(collection, document));
  const withEvents: StoredDocument[] = [];
  return write(app, collection, {
    action: 'insert',
    adds: { documents },
    async run(stored, nextEvent) {
      const turn = takeTurns();
      for (const document of documents) {
        await turn();
        withEvents.push(withOutbox(document, await nextEvent()));
      }
      return planned.run(stored, withEvents);
    },
    changed: (result) => planned.changed(result, withEvents),
  });
}
