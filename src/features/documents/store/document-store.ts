import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Store, WriteTurn } from '../../../platform/database/database.js';
import type { Referrer } from '../../access/access-rules.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import type { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { findListeners } from '../../webhooks/events/queue-events.js';
import { commitWrite, type Committed, type DecidedWrite } from './commit-writes.js';
import type { StoredDocument, SystemFields } from './document.js';
import { nextVersion } from './next-version.js';
import { openMatch, withValues } from './service-change.js';
import { openRemoval } from './state-writes.js';

type Filter = Record<string, unknown>;

/** The documents of a collection, for reading: whatever writes them is committed by commit-writes.ts (decision 1). */
export type DocumentReader<T extends SystemFields> = Pick<
  Store<T>,
  'aggregate' | 'collectionName' | 'countDocuments' | 'find' | 'findOne'
>;

export function documentStore(app: Pick<App, 'db'>, collection: Collection): DocumentReader<StoredDocument> {
  return app.db.collection<StoredDocument>(documentsName(collection));
}

/**
 * Gives the one document that matches other values, by their paths, and answers it as it is afterwards; null when none
 * matches. A change of the service's own: in a full project too. With the change, and only with it, `together` is
 * stored.
 */
export async function changeDocumentRecord(
  app: App,
  collection: Collection,
  filter: Filter & { _id: ObjectId },
  set: Record<string, unknown>,
  together: readonly WriteTurn[] = [],
): Promise<StoredDocument | null> {
  const matches = await openMatch(filter);
  const listeners = await findListeners(app, collection, 'update');
  return (
    await commitChange(app, {
      ...{ collection, id: filter._id, action: 'update', listeners, follow: together },
      decide: (stored) =>
        stored && matches(stored) ? nextVersion(app, collection, stored, withValues(stored, set)) : stored,
    })
  ).after;
}

/**
 * Removes the document of an id permanently, in the trash or not, and answers it as it was; null when there is none,
 * 409 DOCUMENT_REFERRED_TO. With the removal, and only with it, `together` is stored.
 */
export async function removeDocumentRecord(
  app: App,
  collection: Collection,
  id: ObjectId,
  { referrer = null, together = [] }: { referrer?: Referrer | null; together?: readonly WriteTurn[] } = {},
): Promise<StoredDocument | null> {
  const admit = (stored: StoredDocument | null): stored is StoredDocument => typeof stored?.isDeleted === 'boolean';
  const removal = await openRemoval(app, { collection, id, referrer, admit });
  return (await commitChange(app, { ...removal, follow: [...removal.follow!, ...together] })).before;
}

/** What became of a document by a write; nothing where it stays as it is. */
async function commitChange(app: App, write: DecidedWrite, options?: { isNote: boolean }): Promise<Committed> {
  const { before, after } = await commitWrite(app, write, options);
  return before === after ? { before: null, after: null } : { before, after };
}

/** Paths inside the field of a document that belongs to the service, with their values. */
export type ServiceNotes = Record<`${typeof HIDDEN_FIELD}.${string}`, unknown>;

/**
 * Stores the service's own notes in the one document that matches and answers it; without webhook events. With them,
 * and only with them, `together` is stored.
 */
export async function noteInDocument(
  app: App,
  collection: Collection,
  filter: Filter & { _id: ObjectId },
  notes: ServiceNotes,
  together: readonly WriteTurn[] = [],
): Promise<StoredDocument | null> {
  const matches = await openMatch(filter);
  const note: DecidedWrite = {
    ...{ collection, id: filter._id, action: 'update', listeners: null, follow: together },
    decide: (stored) => (stored && matches(stored) ? withValues(stored, notes) : stored),
  };
  return (await commitChange(app, note, { isNote: true })).after;
}
