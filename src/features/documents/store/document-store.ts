import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Store } from '../../../platform/database/database.js';
import type { Referrer } from '../../access/access-rules.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import type { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { foldChanged } from '../../collections/fields/nocase.js';
import { OUTBOX_SINCE, withEvent } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import { commitWrites, type Committed, type DecidedWrite } from './commit-writes.js';
import type { StoredDocument, SystemFields } from './document.js';
import { withValueAt } from './find-held.js';
import { imageBefore } from './image-before.js';
import { openMatch } from './open-match.js';
import { later, type DecidedUpdate } from './record-update.js';
import { openRemoval } from './state-writes.js';
import { write } from './write.js';

type Filter = Record<string, unknown>;

/** The documents of a collection, for reading: everything that writes them passes `write` (decision 1). */
export type DocumentReader<T extends SystemFields> = Pick<
  Store<T>,
  'aggregate' | 'collectionName' | 'countDocuments' | 'find' | 'findOne'
>;

export function documentStore(app: Pick<App, 'db'>, collection: Collection): DocumentReader<StoredDocument> {
  return app.db.collection<StoredDocument>(documentsName(collection));
}

/** Removes documents that nobody sees, or that everybody was told of as gone: so nobody is told. Their number. */
async function removeUnseen(app: App, collection: Collection, filter: Filter): Promise<number> {
  const removed = await write(app, collection, {
    action: 'delete',
    adds: null,
    makesRoom: true,
    run: (stored) => stored.deleteMany(filter),
    changed: () => null,
  });
  return removed.deletedCount;
}

/**
 * Gives the one document that matches other values, by their paths, and answers it as it is afterwards; null when none
 * matches. A change of the service's own: in a full project too.
 */
export async function changeDocumentRecord(
  app: App,
  collection: Collection,
  filter: Filter & { _id: ObjectId },
  set: Record<string, unknown>,
): Promise<StoredDocument | null> {
  const matches = await openMatch(filter);
  const entry = await queueEvents(app, collection, 'update');
  const now = app.clock.now();
  const keepsBefore = imageBefore(app, collection);
  const apply = (document: StoredDocument): StoredDocument => {
    let next = document;
    for (const [path, value] of Object.entries(set)) {
      next = (withValueAt(next, path.split('.'), value) ?? next) as StoredDocument;
    }
    return next;
  };
  const update: DecidedUpdate = {
    action: 'update',
    apply,
    decide(stored) {
      if (!stored || !matches(stored)) return stored;
      const next = foldChanged(collection, stored, { ...apply(stored), updatedAt: later(stored, now) });
      return entry ? withEvent(next, keepsBefore(entry, stored)) : next;
    },
  };
  return (await commitChange(app, { collection, id: filter._id, ...update })).after;
}

/**
 * Removes the document of an id for good, in the trash or not, and answers it as it was; null when there is none, 409
 * DOCUMENT_REFERRED_TO.
 */
export async function removeDocumentRecord(
  app: App,
  collection: Collection,
  id: ObjectId,
  referrer: Referrer | null = null,
): Promise<StoredDocument | null> {
  const admit = (stored: StoredDocument | null): stored is StoredDocument => typeof stored?.isDeleted === 'boolean';
  const update = await openRemoval(app, { collection, id, referrer, admit });
  return (await commitChange(app, { collection, id, ...update })).before;
}

/** What became of a document by a write; nothing where it stays as it is. */
async function commitChange(app: App, write: DecidedWrite): Promise<Committed> {
  const [committed] = await commitWrites(app, [write]);
  const { before, after } = committed!;
  return before === after ? { before: null, after: null } : { before, after };
}

/** Paths inside the field of a document that belongs to the service, with their values. */
export type ServiceNotes = Record<`${typeof HIDDEN_FIELD}.${string}`, unknown>;

/** Stores the service's own notes in the one document that matches and answers it; no webhook is told of them. */
export async function noteInDocument(
  app: App,
  collection: Collection,
  filter: Filter,
  notes: ServiceNotes,
): Promise<StoredDocument | null> {
  return write(app, collection, {
    action: 'update',
    adds: null,
    run: (stored) => stored.findOneAndUpdate(filter, { $set: notes }, { returnDocument: 'after' }),
    changed: () => null,
  });
}

/**
 * Removes at most `limit` of the documents that were trashed until `until`, and returns their number. One that is
 * recovered before stays, and one whose events wait in it until they are relayed.
 */
export async function removeTrashedRecords(
  app: App,
  collection: Collection,
  until: Date,
  limit: number,
): Promise<number> {
  const trashed = { isDeleted: true, deletedAt: { $lte: until }, [OUTBOX_SINCE]: null };
  const found = await app.db
    .collection<StoredDocument>(documentsName(collection))
    .find(trashed)
    .project<{ _id: ObjectId }>({ _id: 1 })
    .limit(limit)
    .toArray();
  if (found.length === 0) return 0;
  return removeUnseen(app, collection, { _id: { $in: found.map(({ _id }) => _id) }, ...trashed });
}
