import type { App } from '../../app.js';
import type { Collection } from '../collections/collection.js';
import { relayWaiting } from '../webhooks/outbox/relay-waiting.js';

/** Prepares the reading of a log, so that a page is never behind a list. */
export async function prepareRead(app: App, collection: Collection): Promise<void> {
  // What was written before this moment must be in the log.
  if (!app.db.changeLogs) await relayWaiting(app, collection);
}
