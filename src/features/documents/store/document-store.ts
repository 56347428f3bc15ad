import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Store, WriteTurn } from '../../../platform/database/database.js';
import type { Referrer } from '../../access/access-rules.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import type { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { findListeners } from '../../webhooks/events/queue-events.js';
import { commitWrite, type DecidedWrite } from './commit-writes.js';
import { nextVersion, type StoredDocument, type SystemFields } from './document.js';
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

/** Paths inside the field of a document that belongs to the service, with their values. */
export type ServiceNotes = Record<`${typeof HIDDEN_FIELD}.${string}`, unknown>;

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
  together?: readonly WriteTurn[],
): Promise<StoredDocument | null> {
  const listeners = await findListeners(app, collection, 'update');
  return changeMatching(app, { collection, listeners, follow: together }, filter, (stored) =>
    nextVersion(app, collection, stored, withValues(stored, set)),
  );
}

/** changeDocumentRecord of the service's own notes: the version stays, and nobody is told. */
export function noteInDocument(
  app: App,
  collection: Collection,
  filter: Filter & { _id: ObjectId },
  notes: ServiceNotes,
  together?: readonly WriteTurn[],
): Promise<StoredDocument | null> {
  const write = { collection, listeners: null, follow: together, isNote: true };
  return changeMatching(app, write, filter, (stored) => withValues(stored, notes));
}

async function changeMatching(
  app: App,
  write: Pick<DecidedWrite, 'collection' | 'listeners' | 'follow' | 'isNote'>,
  filter: Filter & { _id: ObjectId },
  change: (stored: StoredDocument) => StoredDocument,
): Promise<StoredDocument | null> {
  const matches = await openMatch(filter);
  const { before, after } = await commitWrite(app, {
    ...write,
    ...{ id: filter._id, action: 'update' },
    decide: (stored) => (stored && matches(stored) ? change(stored) : stored),
  });
  return before === after ? null : after;
}

/**
 * Removes the document of an id permanently, in the trash or not, and answers it as it was; null when there is none,
 * 409 DOCUMENT_REFERRED_TO.
 */
export async function removeDocumentRecord(
  app: App,
  collection: Collection,
  id: ObjectId,
  referrer: Referrer | null = null,
): Promise<StoredDocument | null> {
  const admit = (stored: StoredDocument | null): stored is StoredDocument => typeof stored?.isDeleted === 'boolean';
  const removal = await openRemoval(app, { collection, id, referrer, admit, permanent: true });
  const { before, after } = await commitWrite(app, removal);
  return before === after ? null : before;
}
