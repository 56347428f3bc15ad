import { calculateObjectSize } from 'bson';
import type { App } from '../../../app.js';
import { keepsChanges } from '../../changes/change-log.js';
import type { Collection } from '../../collections/collection.js';
import { foldChanged } from '../../collections/fields/nocase.js';
import { REMOVED } from '../../collections/indexes/document-indexes.js';
import { readingFields } from '../../collections/rules/log-settings.js';
import { withEvent, type OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
import { isHeard, newEvent } from '../../webhooks/outbox/queue-events.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument } from './document.js';

/** More of a document before its change is not kept with the event. */
const MAX_HELD_BYTES = 4 * 1024;

/** What the service adds to changes of a collection's documents, inside of their writes. */
export class Versions {
  readonly #now: number;
  readonly #heldFields: readonly string[];
  readonly #event: OutboxEntry | null;

  /** `heard`: a webhook or a log listens. */
  constructor(
    app: App,
    private readonly collection: Collection,
    action: Action,
    heard: boolean,
  ) {
    this.#now = app.clock.now();
    this.#event = heard ? newEvent(app, action) : null;
    this.#heldFields = heard && !app.db.changeLogs && keepsChanges(app, collection) ? readingFields(collection) : [];
  }

  /** The changed document, a copy that is given away, as it is stored: with a later time and its event. */
  next(stored: StoredDocument, changed: StoredDocument): StoredDocument {
    const next = changed === stored ? { ...stored } : changed;
    next.updatedAt = later(stored, this.#now);
    const folded = foldChanged(this.collection, stored, next);
    return this.#event ? withEvent(folded, this.#entryOf(stored, this.#event)) : folded;
  }

  /** What is left of a removed one: nothing, or an invisible rest with its last event, until that is relayed. */
  gone(stored: StoredDocument): StoredDocument | null {
    const event = this.#event;
    if (!event) return null;
    const { at } = event;
    const rest = { ...stored, isDeleted: REMOVED, deletedAt: at, updatedAt: later(stored, at.getTime()) } as const;
    return withEvent(rest, this.#entryOf(stored, event));
  }

  /** With what was there before, where a log wants to know that. */
  #entryOf(before: StoredDocument, event: OutboxEntry): OutboxEntry {
    if (this.#heldFields.length === 0) return event;
    const held = Object.fromEntries(this.#heldFields.map((name) => [name, before[name] ?? null]));
    return calculateObjectSize(held) <= MAX_HELD_BYTES ? { ...event, held } : event;
  }
}

/** Opens the next versions of a collection's documents. `isSilent`: no webhook and no log hears of the change. */
export async function openVersions(
  app: App,
  collection: Collection,
  action: Action,
  isSilent = false,
): Promise<Versions> {
  return new Versions(app, collection, action, !isSilent && (await isHeard(app, collection, action)));
}

/** Later than the version that is replaced, so that no two have the same `ETag`. */
function later({ updatedAt }: StoredDocument, now: number): Date {
  return new Date(Math.max(now, (updatedAt?.getTime() ?? 0) + 1));
}
