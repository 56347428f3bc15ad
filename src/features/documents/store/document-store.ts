import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { tooLarge } from '../../../errors.js';
import { takeTurns } from '../../../turns.js';
import type { Store } from '../../../platform/database/database.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { PENDING, REMOVED } from '../../collections/indexes/document-indexes.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { BATCH_NUMBER } from '../../collections/indexes/insert-series.js';
import { tellFollowers } from '../../changes/change-log.js';
import { queueEvents, relayLater, relayStoredLater } from '../../webhooks/outbox/queue-events.js';
import {
  OUTBOX_SINCE,
  outboxOperators,
  withOutbox,
  type OutboxEntry,
  type OutboxPaths,
} from '../../webhooks/outbox/outbox-field.js';
import { requireRoomFor, type AddedBytes } from '../../quota/database-quota.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument, SystemFields } from './document.js';
import { growthFilter, grownTooLarge } from './document-growth.js';
import { writeWithImage, type Changed } from './image-before.js';
import {
  describeRefusal,
  EXPLAINED_CODES,
  explainWriteError,
  TRANSACTION_TOO_LARGE,
  type WriteRefusal,
} from './refused-writes.js';
import { together, updateOf, type DocumentUpdate, type RecordChange } from './record-update.js';
import { matchShown } from './shown-documents.js';

type Filter = Record<string, unknown>;

/** The documents of a collection, for reading: everything that writes them passes `write` below (decision 101). */
export type DocumentReader<T extends SystemFields> = Pick<
  Store<T>,
  'aggregate' | 'collectionName' | 'countDocuments' | 'find' | 'findOne'
>;

export function documentStore(app: Pick<App, 'db'>, collection: Collection): DocumentReader<StoredDocument> {
  return app.db.collection<StoredDocument>(documentsName(collection));
}

/**
 * Those documents that a write has changed: as written, with what a single one was before if that is known, or by their
 * ids; null = nobody is told of it.
 */
type ChangedDocuments =
  { documents: readonly StoredDocument[]; before?: StoredDocument } | { ids: readonly ObjectId[] } | null;

interface DocumentWrite<T> {
  action: Action;
  /** What the project's quota is asked for; null = nothing: the write removes, or is the service's own small note. */
  adds: AddedBytes;
  /** Removals go on when the disk is full. */
  makesRoom?: boolean;
  run(stored: Store<StoredDocument>, nextEvent: () => Promise<OutboxEntry | null>): Promise<T>;
  changed(result: T): ChangedDocuments;
}

/**
 * The one way by which documents are written: asks the quota (403 QUOTA_EXCEEDED), gives the events that are stored
 * with the change, translates what the database refuses, and has followers and webhooks told of what was changed.
 */
async function write<T>(app: App, collection: Collection, planned: DocumentWrite<T>): Promise<T> {
  if (planned.adds) await requireRoomFor(app, collection.projectId, planned.adds);
  const nextEvent = (): Promise<OutboxEntry | null> => queueEvents(app, collection, planned.action);
  const run = (): Promise<T> => planned.run(app.db.collection<StoredDocument>(documentsName(collection)), nextEvent);
  let result: T;
  try {
    result = await (planned.makesRoom ? app.db.useReserve(run) : run());
  } catch (error) {
    throw explainWriteError(error);
  }
  await tellOf(app, collection, planned.action, planned.changed(result));
  return result;
}

/** Has followers and webhooks told of what a write has changed. */
export async function tellOf(
  app: App,
  collection: Collection,
  action: Action,
  changed: ChangedDocuments,
): Promise<void> {
  if (!changed) return;
  tellFollowers(app, collection);
  if ('documents' in changed) relayLater(app, collection, changed.documents, changed.before);
  else if (await queueEvents(app, collection, action)) relayStoredLater(app, collection, changed.ids);
}

/** An insert of several documents, each with an event of its own; `run` is given them as they are stored. */
async function writeNew<T>(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
  planned: {
    run(stored: Store<StoredDocument>, documents: readonly StoredDocument[]): Promise<T>;
    changed(result: T, documents: readonly StoredDocument[]): ChangedDocuments;
  },
): Promise<T> {
  const withEvents: StoredDocument[] = [];
  return write(app, collection, {
    action: 'insert',
    adds: { documents },
    async run(stored, nextEvent) {
      const turn = takeTurns();
      for (const document of documents) {
        await turn();
        withEvents.push(withOutbox(document, await nextEvent()));
      }
      return planned.run(stored, withEvents);
    },
    changed: (result) => planned.changed(result, withEvents),
  });
}

/** Stores a new document; 409 DUPLICATE_VALUE when a unique value is taken, 400 when an index cannot hold it. */
export async function insertDocumentRecord(app: App, collection: Collection, document: StoredDocument): Promise<void> {
  await write(app, collection, {
    action: 'insert',
    adds: { documents: [document] },
    async run(stored, nextEvent) {
      const withEvent = withOutbox(document, await nextEvent());
      await stored.insertOne(withEvent);
      return withEvent;
    },
    changed: (withEvent) => ({ documents: [withEvent] }),
  });
}

/** Stores those documents that can be stored, each for itself; answers for the others, by position, why not. */
export async function insertEachRecord(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<Map<number, string>> {
  return writeNew(app, collection, documents, {
    run: insertEach,
    changed: (refused, withEvents) => ({ documents: withEvents.filter((_, at) => !refused.has(at)) }),
  });
}

async function insertEach(
  stored: Store<StoredDocument>,
  documents: readonly StoredDocument[],
): Promise<Map<number, string>> {
  try {
    await stored.insertMany(documents, { ordered: false });
    return new Map();
  } catch (error) {
    const { writeErrors = [] } = error as { writeErrors?: WriteRefusal | WriteRefusal[] };
    const refusals = [writeErrors].flat();
    if (refusals.length === 0 || refusals.some(({ code }) => !EXPLAINED_CODES.has(code))) {
      throw error;
    }
    return new Map(refusals.map((refusal) => [refusal.index, describeRefusal(refusal)]));
  }
}

/**
 * Stores all of the documents or none, at once for every reader: only where the database can. 413 when they are too
 * much for that.
 */
export async function insertRecordsTogether(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<void> {
  await writeNew(app, collection, documents, {
    async run(_, withEvents) {
      try {
        await app.db.insertTogether!(documentsName(collection), withEvents);
      } catch (error) {
        if ((error as { code?: unknown }).code !== TRANSACTION_TOO_LARGE) throw error;
        const text = 'The documents have too many index entries to be stored all at once: send fewer in one request';
        throw tooLarge('BATCH_TOO_LARGE', text);
      }
    },
    changed: (_, withEvents) => ({ documents: withEvents }),
  });
}

/**
 * Stores documents of a batch that is hidden; their unique values are taken from now on. After an error some of them
 * may be there. Nobody is told before they are shown (relayInserted).
 */
export async function insertHiddenRecords(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
  batchNumber: number,
): Promise<void> {
  const hide = (document: StoredDocument): StoredDocument => ({
    ...document,
    [HIDDEN_FIELD]: { ...(document[HIDDEN_FIELD] as object | undefined), batch: batchNumber },
  });
  await writeNew(app, collection, documents, {
    run: (stored, withEvents) => stored.insertMany(withEvents.map(hide), { ordered: true }),
    changed: () => null,
  });
}

/** Has the events of documents relayed that were stored hidden and are shown now by a write of their batch's record. */
export async function relayInserted(app: App, collection: Collection, ids: readonly ObjectId[]): Promise<void> {
  await tellOf(app, collection, 'insert', { ids });
}

/** Removes the documents of a batch that never came to stand. */
export async function removeHiddenRecords(
  app: App,
  collection: Collection,
  { ids, number }: { ids: readonly ObjectId[]; number: number },
): Promise<void> {
  await removeUnseen(app, collection, { _id: { $in: [...ids] }, [BATCH_NUMBER]: number });
}

/** Removes those of the documents that are still pending. */
export async function removePendingRecords(app: App, collection: Collection, ids: readonly ObjectId[]): Promise<void> {
  await removeUnseen(app, collection, { _id: { $in: [...ids] }, isDeleted: PENDING });
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
 * Makes pending documents active. Harmless to repeat; 400 when an index that was made meanwhile cannot hold one of
 * them.
 */
export async function publishPendingRecords(app: App, collection: Collection, ids: readonly ObjectId[]): Promise<void> {
  const pending = { _id: { $in: [...ids] }, isDeleted: PENDING } as const;
  await write(app, collection, {
    action: 'insert',
    adds: null,
    run: (stored) => stored.updateMany(pending, { $set: { isDeleted: false } }),
    changed: () => ({ ids }),
  });
}

/**
 * Changes the one document that matches, in one atomic write, and answers it as it is afterwards; null when none
 * matches. 409 DUPLICATE_VALUE when a unique value is taken; 413 when it would grow too large; PathBlocked when a
 * dotted path leads through something that is not an object.
 */
export async function changeDocumentRecord(
  app: App,
  collection: Collection,
  filter: Filter,
  { action, set, unset = [], operators = {}, isOwn = false }: RecordChange,
): Promise<StoredDocument | null> {
  const update = updateOf({ set, unset, operators });
  const added = { ...operators, ...set };
  const { document } = await write(app, collection, {
    action,
    adds: isOwn ? null : { change: added },
    async run(stored, nextEvent) {
      const growth = isOwn ? null : growthFilter(app, added, unset);
      if (!growth) return updateOne(app, collection, filter, update, await nextEvent());
      const changed = await updateOne(app, collection, { $and: [filter, growth] }, update, await nextEvent());
      if (!changed.document && (await stored.findOne({ $and: [filter, { $nor: [growth] }] }, ID_ALONE))) {
        throw grownTooLarge();
      }
      return changed;
    },
    changed: changedOne,
  });
  return document;
}

const ID_ALONE = { projection: { _id: 1 } } as const;

function changedOne({ document, before }: Changed): ChangedDocuments {
  return document && { documents: [document], before };
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
  const { document } = await write(app, collection, {
    action: 'update',
    adds: null,
    run: () => updateOne(app, collection, filter, { $set: notes }, null),
    changed: () => null,
  });
  return document;
}

/** Updates the one shown document that matches; where somebody is told of it, with what it was before. */
async function updateOne(
  app: App,
  collection: Collection,
  filter: Filter,
  update: DocumentUpdate,
  entry: OutboxEntry | null,
): Promise<Changed> {
  // By path: the type of a document whose fields are its client's cannot name them.
  const byPath: Store<SystemFields & OutboxPaths> = app.db.collection(documentsName(collection));
  const read = (wanted: Filter): Promise<StoredDocument | null> => byPath.findOne(wanted);
  const write = (wanted: Filter, event: OutboxEntry | null): Promise<StoredDocument | null> =>
    byPath.findOneAndUpdate(wanted, together(outboxOperators(event), update), { returnDocument: 'after' });
  const changed = await matchShown(app, collection, async (shown) => {
    const wanted = { ...filter, ...shown };
    const tried = entry
      ? await writeWithImage(app, collection, entry, wanted, { read, write })
      : { document: await write(wanted, null) };
    return tried.document && tried;
  });
  return changed ?? { document: null };
}

/**
 * Removes the one document that matches for good and answers it; null when none matches. With an event to tell it
 * leaves an invisible rest until that is relayed.
 */
export async function removeDocumentRecord(
  app: App,
  collection: Collection,
  filter: Filter,
): Promise<StoredDocument | null> {
  const { document } = await write(app, collection, {
    action: 'delete',
    adds: null,
    makesRoom: true,
    async run(stored, nextEvent) {
      const entry = await nextEvent();
      if (entry) {
        const set = { isDeleted: REMOVED, deletedAt: entry.at, updatedAt: entry.at };
        return updateOne(app, collection, filter, { $set: set }, entry);
      }
      const remove = (shown: Filter): Promise<StoredDocument | null> =>
        stored.findOneAndDelete({ ...filter, ...shown });
      return { document: await matchShown(app, collection, remove) };
    },
    changed: changedOne,
  });
  return document;
}

/**
 * Removes at most `limit` of the documents that were trashed until `until`, and returns their number. One that is
 * recovered meanwhile stays, and one whose events wait in it until they are relayed.
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
