import type { App } from '../../../app.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { PENDING } from '../../collections/indexes/document-indexes.js';
import { findShown } from '../../collections/indexes/insert-series.js';
import { OUTBOX_SINCE } from './outbox-field.js';
import { relayDocuments } from './relay-outbox.js';

const BATCH = 200;

/** Relays what waits in the documents of a collection at this moment, whoever wrote it. */
export async function relayWaiting(app: App, collection: Collection): Promise<void> {
  const stored = { isDeleted: { $ne: PENDING }, ...(await findShown(app, collection._id)) };
  for (;;) {
    const found = (await app.db
      .collection<Record<string, unknown>>(documentsName(collection))
      .find({ [OUTBOX_SINCE]: { $gt: new Date(0) }, ...stored })
      .sort({ [OUTBOX_SINCE]: 1 })
      .limit(BATCH)
      .toArray()) as Record<string, unknown>[];
    const readAt = new Date(app.clock.now());
    await relayDocuments(
      app,
      found.map((document) => ({ collection, document, readAt })),
    );
    if (found.length < BATCH) return;
  }
}
