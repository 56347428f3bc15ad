import type { ObjectId } from 'bson';
import type { Referrer } from '../../access/access-rules.js';
import type { Collection } from '../../collections/collection.js';
import type { Action } from '../../webhooks/webhook-event.js';
import { REMOVED } from '../../collections/indexes/document-indexes.js';
import { outboxOperators, type OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
import type { StoredDocument } from './document.js';

/** Paths of one document that a write changes. */
export interface RecordChange {
  action: Action;
  set: Record<string, unknown>;
  unset?: readonly string[];
  /** The database's update operators, each with its paths. */
  operators?: Record<string, Record<string, unknown>>;
  /** The service's own paths alone: stored in a full project too, and in a document of the largest size. */
  isOwn?: boolean;
}

/**
 * A new document, or the change or permanent removal of the one that meets the filter. References are the referrer's;
 * without one they are the project's, which stands above all rules.
 */
export type RecordWrite = { collection: Collection; referrer?: Referrer | null } & (
  | { insert: StoredDocument }
  | { id: ObjectId; filter: Record<string, unknown>; record: RecordChange }
  | { id: ObjectId; filter: Record<string, unknown>; removed: true }
);

/** The id of the document that a write is of. */
export function writtenId(write: RecordWrite): ObjectId {
  return 'insert' in write ? write.insert._id : write.id;
}

/** The database's update of a change: its operators, each with paths. */
export type DocumentUpdate = Record<string, Record<string, unknown>>;

export function updateOf({ set, unset = [], operators = {} }: Omit<RecordChange, 'action'>): DocumentUpdate {
  return {
    ...operators,
    $set: set,
    ...(unset.length > 0 && { $unset: Object.fromEntries(unset.map((path) => [path, ''])) }),
  };
}

/** Two updates of different paths as one. */
export function together(one: DocumentUpdate, other: DocumentUpdate): DocumentUpdate {
  const both = { ...one };
  for (const [operator, paths] of Object.entries(other)) both[operator] = { ...both[operator], ...paths };
  return both;
}

/** What leaves an invisible rest of a removed document, with its last event, until that is relayed. */
export function removedUpdate(entry: OutboxEntry): DocumentUpdate {
  return together(outboxOperators(entry), { $set: removedFields(entry) });
}

export function removedFields({ at }: OutboxEntry): Record<string, unknown> {
  return { isDeleted: REMOVED, deletedAt: at, updatedAt: at };
}
