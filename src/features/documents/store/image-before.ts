import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import { OUTBOX_SEQ, type Outbox } from '../../webhooks/outbox/outbox-field.js';
import { isHeard } from '../../webhooks/outbox/queue-events.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument } from './document.js';

type Filter = Record<string, unknown>;

export interface Changed {
  document: StoredDocument | null;
  /** The document before; unknown where nobody listens, or others kept changing it. */
  before?: StoredDocument;
}

/** Writers that come between are rare; after so many the event goes without the old values. */
const ATTEMPTS = 3;

/**
 * Carries out the write of one document and answers with it what the document was before, if a webhook wants to know.
 * The write then also demands that no event has come between: each raises the number that is asked for.
 */
export async function writeWithImage(
  app: App,
  collection: Collection,
  action: Action,
  filter: Filter,
  { read, write }: Record<'read' | 'write', (filter: Filter) => Promise<StoredDocument | null>>,
): Promise<Changed> {
  if (!(await isHeard(app, collection, action))) return { document: await write(filter) };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await read(filter);
    if (!before) return { document: null };
    const seq = (before[HIDDEN_FIELD] as Outbox | undefined)?.seq ?? null;
    const document = await write({ ...filter, [OUTBOX_SEQ]: seq });
    if (document) return { document, before };
  }
  return { document: await write(filter) };
}
