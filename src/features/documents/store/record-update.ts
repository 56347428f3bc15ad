import type { ObjectId } from 'bson';
import type { Exists, ReadFields, WriteTurn } from '../../../platform/database/database.js';
import type { Collection } from '../../collections/collection.js';
import { REMOVED } from '../../collections/indexes/document-indexes.js';
import { withEvent, type OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument } from './document.js';

/** A new document, or what is decided about a stored one. */
export type RecordWrite = { collection: Collection } & (
  { insert: StoredDocument } | { id: ObjectId; update: DecidedUpdate }
);

/** A change, a trashing, a recovery or a removal that is decided inside of its write, by the stored document. */
export interface DecidedUpdate {
  action: Action;
  /**
   * What is stored from now on (null: nothing), the same object for no change; throws why the write is refused, or
   * AskOutside. `stored` is null where there is no such document.
   */
  decide: (stored: StoredDocument | null, exists: Exists, read: ReadFields) => StoredDocument | null;
  /** What the change alone makes of a document. */
  apply: (document: StoredDocument) => StoredDocument;
  /** Turns of the same transaction that come after it. */
  follow?: readonly WriteTurn[];
  /** Throws why a document may not be stored in which own code has set something since it was decided about. */
  requireFilled?: (stored: StoredDocument | null, next: StoredDocument, exists: Exists, read: ReadFields) => void;
}

/** The id of the document that a write is of. */
export function writtenId(write: RecordWrite): ObjectId {
  return 'insert' in write ? write.insert._id : write.id;
}

/** What is left of a removed document: nothing, or an invisible rest with its last event, until that is relayed. */
export function removed(stored: StoredDocument, entry: OutboxEntry | null): StoredDocument | null {
  if (!entry) return null;
  const { at } = entry;
  return withEvent({ ...stored, isDeleted: REMOVED, deletedAt: at, updatedAt: later(stored, at.getTime()) }, entry);
}

/** The time to store with a change: later than the version that it replaces, so that no two have the same `ETag`. */
export function later({ updatedAt }: StoredDocument, now: number): Date {
  return new Date(Math.max(now, (updatedAt?.getTime() ?? 0) + 1));
}
