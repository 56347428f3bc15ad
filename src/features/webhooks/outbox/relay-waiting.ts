import type { App } from '../../../app.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { OUTBOX_SINCE } from './outbox-field.js';
import { relayDocuments } from './relay-outbox.js';

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
