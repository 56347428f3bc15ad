import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { withAuditEntry } from '../../audit/audit-log.js';
import { collectionStore, findCollection } from '../../collections/collection-store.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { findReferences, type Reference } from '../../collections/references/reference.js';
import { USERS } from '../../collections/users-collection.js';
import type { StoredDocument } from '../store/document.js';
import { changeDocumentRecord, documentStore } from '../store/document-store.js';
import type { RecordWrite } from '../store/record-update.js';
import { referringTo, TRASHED_WITH } from '../store/reference-checks.js';
import { writeRecordsTogether, WriteRefused } from '../store/write-together.js';
import { nextVersion } from '../store/version.js';

/** Documents read at once. */
const BATCH = 100;
/** So often all are gone through at once; then the job is tried again later. */
const PASSES = 5;

type Filter = Record<string, unknown>;

interface ReferredDocument {
  projectId: ObjectId;
  collectionId: ObjectId;
  id: ObjectId;
}

/**
 * Does to the documents that refer to one what their references ask (writes.md 3): those of one that is gone are
 * cleared, trashed or removed; those that were trashed with one that is back come back, unless they refer to another
 * that is gone or their unique values are taken. Each by a write of its own, which demands that this is still so:
 * harmless to repeat, at once too. True when all is done, false when it was stopped. Throws the last refusal.
 */
export async function settleReferences(app: App, referred: ReferredDocument, stop: AbortSignal): Promise<boolean> {
  const collection = await findReferred(app, referred);
  if (!collection) return true;
  for (let pass = 1; pass <= PASSES; pass++) {
    const isBack = await isActive(app, collection, referred.id);
    const settled: Settled = { isStopped: false, isOvertaken: false, refusal: null };
    for (const reference of await findReferences(app, collection)) {
      const { onDelete, isRequired } = reference;
      // A reference that did not keep the document is cleared, unless that would leave one that misfits its schema.
      if (isBack ? onDelete !== 'trash' : onDelete === 'restrict' && isRequired) continue;
      await settleOne(app, { collection, id: referred.id, reference, isBack }, settled, stop);
    }
    if (settled.isStopped) return false;
    if (settled.refusal) throw settled.refusal;
    if ((await isActive(app, collection, referred.id)) === isBack && !settled.isOvertaken) return true;
  }
  throw new Error(`what refers to ${referred.id.toHexString()} changes all the time`);
}

async function findReferred(app: App, { projectId, collectionId }: ReferredDocument): Promise<Collection | null> {
  const found = await collectionStore(app).findOne({ _id: collectionId, projectId, state: 'active' });
  return found ?? (collectionId.equals(projectId) ? findCollection(app, projectId, USERS) : null);
}

const active = (id: ObjectId): Filter => ({ _id: id, isDeleted: false });

async function isActive(app: App, collection: Collection, id: ObjectId): Promise<boolean> {
  const options = { ...app.db.confirmedReads, projection: { _id: 1 } };
  return (await documentStore(app, collection).findOne(active(id), options)) !== null;
}

interface Settling {
  collection: Collection;
  id: ObjectId;
  reference: Reference;
  isBack: boolean;
}

/** What became of a pass. */
interface Settled {
  isStopped: boolean;
  /** A document was not written as others came between, or as it belongs to a bulk insert that does not stand yet. */
  isOvertaken: boolean;
  refusal: AppError | null;
}

/** Settles one reference; an act of the audit where it finds anything. */
async function settleOne(app: App, settling: Settling, settled: Settled, stop: AbortSignal): Promise<void> {
  const { collection, id, reference, isBack } = settling;
  const filter = isBack
    ? { ...referringTo(reference, id), isDeleted: true, [TRASHED_WITH]: { $exists: true } }
    : referringTo(reference, id);
  const first = await nextBatch(app, reference.collection, filter, null);
  if (first.length === 0) return;
  const done = isBack ? 'recover' : reference.onDelete === 'restrict' ? 'unset' : reference.onDelete!;
  const input = { collection: collection.name, id: id.toHexString(), referring: reference.collection.name, done };
  const act = {
    actor: 'system',
    action: 'references settle',
    input: { ...input, project: collection.projectId.toHexString() },
  };
  await withAuditEntry(app, act, async () => {
    for (let batch = first; batch.length > 0 && !settled.isStopped;) {
      for (const { _id } of batch) {
        if (stop.aborted) settled.isStopped = true;
        if (settled.isStopped) return;
        try {
          if (await settleDocument(app, settling, _id)) app.metrics.event('settled_references', done);
          else settled.isOvertaken = true;
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          // What cannot come back stays in the trash; what has to go is tried again.
          if (!isBack) settled.refusal = error;
        }
      }
      batch = await nextBatch(app, reference.collection, filter, batch.at(-1)!._id);
    }
  });
}

function nextBatch(
  app: App,
  collection: Collection,
  filter: Filter,
  after: ObjectId | null,
): Promise<{ _id: ObjectId }[]> {
  return documentStore(app, collection)
    .find(after ? { ...filter, _id: { $gt: after } } : filter)
    .project<{ _id: ObjectId }>({ _id: 1 })
    .sort({ _id: 1 })
    .limit(BATCH)
    .toArray();
}

async function settleDocument(app: App, settling: Settling, _id: ObjectId): Promise<boolean> {
  const { reference, isBack, id } = settling;
  const now = app.clock.now();
  const moments = { deletedAt: new Date(now), updatedAt: nextVersion(now, _id) };
  if (isBack) {
    const filter = { ...referringTo(reference, id), _id, isDeleted: true, [TRASHED_WITH]: { $exists: true } };
    const set = { ...moments, isDeleted: false, deletedAt: null };
    const back = await changeDocumentRecord(app, reference.collection, filter, { action: 'recover', set });
    return back !== null;
  }
  return (await writeWhileGone(app, settling, writeFor(settling, _id, moments))) !== null;
}

type RecordChanged = Exclude<RecordWrite, { insert: StoredDocument }>;

function writeFor(
  { reference, id }: Settling,
  _id: ObjectId,
  moments: { deletedAt: Date; updatedAt: Date },
): RecordChanged {
  const { collection, field, isList, onDelete } = reference;
  const filter = { ...referringTo(reference, id), _id };
  const text = id.toHexString();
  if (onDelete === 'remove') return { collection, id: _id, filter, removed: true };
  if (onDelete === 'trash') {
    const set = { ...moments, isDeleted: true, [TRASHED_WITH]: text };
    return { collection, id: _id, filter, record: { action: 'delete', set } };
  }
  const taken = isList ? { operators: { $pull: { [field]: text } } } : { unset: [field] };
  const set = { updatedAt: moments.updatedAt };
  return { collection, id: _id, filter, record: { action: 'update', set, ...taken } };
}

/** The write as long as the referred document is gone. */
async function writeWhileGone(
  app: App,
  { collection, id }: Settling,
  write: RecordChanged,
): Promise<StoredDocument | null> {
  const isGone = { collection: documentsName(collection), filter: active(id), matches: false };
  try {
    const [document] = await app.db.useReserve(() => writeRecordsTogether(app, [write], isGone));
    return document ?? null;
  } catch (error) {
    if (!(error instanceof WriteRefused)) throw error;
    if (error.cause) throw error.cause;
    return null;
  }
}
