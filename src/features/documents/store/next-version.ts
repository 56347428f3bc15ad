import { calculateObjectSize } from 'bson';
import type { App } from '../../../app.js';
import { keepsChanges } from '../../changes/change-log.js';
import type { Collection } from '../../collections/collection.js';
import { foldChanged } from '../../collections/fields/nocase.js';
import { REMOVED } from '../../collections/indexes/document-indexes.js';
import { readingFields } from '../../collections/rules/log-settings.js';
import { withEvent, type OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument } from './document.js';

/** What the service adds to a change inside of its write. */
export interface Versions {
  /** The changed document as it is stored: with a later time, its folded values and its event. */
  next(stored: StoredDocument, changed: StoredDocument): StoredDocument;
  /** What is left of a removed one: nothing, or an invisible rest with its last event, until that is relayed. */
  gone(stored: StoredDocument): StoredDocument | null;
}

/** More of a document before its change is not kept with the event. */
const MAX_HELD_BYTES = 4 * 1024;

/** Opens the next versions of a collection's documents. `isSilent`: no webhook and no log hears of the change. */
export async function openVersions(
  app: App,
  collection: Collection,
  action: Action,
  isSilent = false,
): Promise<Versions> {
  const entry = isSilent ? null : await queueEvents(app, collection, action);
  const now = app.clock.now();
  const heldFields = entry && !app.db.changeLogs && keepsChanges(app, collection) ? readingFields(collection) : [];

  /** With what was there before, where a log wants to know that. */
  function entryOf(before: StoredDocument): OutboxEntry {
    const held = Object.fromEntries(heldFields.map((name) => [name, before[name] ?? null]));
    const isKept = heldFields.length > 0 && calculateObjectSize(held) <= MAX_HELD_BYTES;
    return isKept ? { ...entry!, held } : entry!;
  }

  return {
    next(stored, changed) {
      const next = foldChanged(collection, stored, { ...changed, updatedAt: later(stored, now) });
      return entry ? withEvent(next, entryOf(stored)) : next;
    },
    gone(stored) {
      if (!entry) return null;
      const at = entry.at;
      const rest = { ...stored, isDeleted: REMOVED, deletedAt: at, updatedAt: later(stored, at.getTime()) } as const;
      return withEvent(rest, entryOf(stored));
    },
  };
}

/** Later than the version that is replaced, so that no two have the same `ETag`. */
function later({ updatedAt }: StoredDocument, now: number): Date {
  return new Date(Math.max(now, (updatedAt?.getTime() ?? 0) + 1));
}
