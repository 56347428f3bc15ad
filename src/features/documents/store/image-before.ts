import { calculateObjectSize } from 'bson';
import type { App } from '../../../app.js';
import { keepsChanges } from '../../changes/change-log.js';
import type { Collection } from '../../collections/collection.js';
import { readingFields } from '../../collections/rules/log-settings.js';
import { OUTBOX_SEQ, type Outbox, type OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
import { isHeard } from '../../webhooks/outbox/queue-events.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { StoredDocument } from './document.js';

type Filter = Record<string, unknown>;

export interface Changed {
  document: StoredDocument | null;
  /** The document before; unknown where nobody listens, or others kept changing it. */
  before?: StoredDocument;
}

/** Writers that come between are rare; after this number the event goes without the old values. */
const ATTEMPTS = 3;
/** More of a document before its change is not kept with the event. */
const MAX_HELD_BYTES = 4 * 1024;

/**
 * Carries out the write of one document with its event and answers with it what the document was before, if a webhook
 * or a log of changes wants to know. The write then also demands that no event has come between: each raises the number
 * that is asked for.
 */
export async function writeWithImage(
  app: App,
  collection: Collection,
  entry: OutboxEntry,
  filter: Filter,
  {
    read,
    write,
  }: {
    read: (filter: Filter) => Promise<StoredDocument | null>;
    write: (filter: Filter, entry: OutboxEntry) => Promise<StoredDocument | null>;
  },
): Promise<Changed> {
  const fields = !app.db.changeLogs && keepsChanges(app, collection) ? readingFields(collection) : [];
  if (fields.length === 0 && !(await isHeard(app, collection, entry.action))) {
    return { document: await write(filter, entry) };
  }
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await read(filter);
    if (!before) return { document: null };
    const seq = (before[HIDDEN_FIELD] as Outbox | undefined)?.seq ?? null;
    const document = await write({ ...filter, [OUTBOX_SEQ]: seq }, withHeld(entry, before, fields));
    if (document) return { document, before };
  }
  return { document: await write(filter, entry) };
}

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
