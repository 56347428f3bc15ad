import { calculateObjectSize } from 'bson';
import type { App } from '../../../app.js';
import { keepsChanges } from '../../changes/change-log.js';
import type { Collection } from '../../collections/collection.js';
import { readingFields } from '../../collections/rules/log-settings.js';
import type { OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
import type { StoredDocument } from './document.js';

/** More of a document before its change is not kept with the event. */
const MAX_HELD_BYTES = 4 * 1024;

/** What makes of an event the one that is stored with a change, where a log wants to know what was there before. */
export function imageBefore(
  app: App,
  collection: Collection,
): (entry: OutboxEntry, before: StoredDocument) => OutboxEntry {
  const fields = !app.db.changeLogs && keepsChanges(app, collection) ? readingFields(collection) : [];
  return (entry, before) => withHeld(entry, before, fields);
}

function withHeld(entry: OutboxEntry, before: StoredDocument, fields: readonly string[]): OutboxEntry {
  if (fields.length === 0) return entry;
  const held = Object.fromEntries(fields.map((name) => [name, before[name] ?? null]));
  return calculateObjectSize(held) > MAX_HELD_BYTES ? entry : { ...entry, held };
}
