import type { ObjectId } from 'bson';
import type { Exists, ReadFields, WriteTurn } from '../../../platform/database/database.js';
import type { Referrer } from '../../access/access-rules.js';
import type { Collection } from '../../collections/collection.js';
import type { Action } from '../../webhooks/webhook-event.js';
import { REMOVED } from '../../collections/indexes/document-indexes.js';
import { outboxOperators, type OutboxEntry } from '../../webhooks/outbox/outbox-field.js';
import type { StoredDocument } from './document.js';

/** The service's own paths of one document: changed in a full project too, and in a document of the largest size. */
export interface RecordChange {
  action: Action;
  set: Record<string, unknown>;
  unset?: readonly string[];
  /** The database's update operators, each with its paths. */
  operators?: Record<string, Record<string, unknown>>;
}

/**
 * A new document, or the change or permanent removal of the one that meets the filter. References are the referrer's;
 * without one they are the project's, which stands above all rules.
 */
export type RecordWrite = { collection: Collection; referrer?: Referrer | null } & (
  | { insert: StoredDocument }
  | { id: ObjectId; filter: Record<string, unknown>; record: RecordChange }
  | { id: ObjectId; filter: Record<string, unknown>; removed: true }
  | { id: ObjectId; update: DecidedUpdate }
);

/** An update that is decided inside of its write, by the stored document (null: there is none). */
export interface DecidedUpdate {
  /** What is stored from now on, the same object for no change; throws why the write is refused, or AskOutside. */
  decide: (stored: StoredDocument | null, exists: Exists, read: ReadFields) => StoredDocument;
  /** What the change alone makes of a document. */
  apply: (document: StoredDocument) => StoredDocument;
}

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

/** The decision as the database runs it: of documents it knows nothing. */
export function runOf({ decide }: DecidedUpdate): WriteTurn['run'] {
  return (stored, ...asking) => decide(stored as StoredDocument | null, ...asking);
}
