import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import type { Exists } from '../../../platform/database/database.js';
import { withAuditEntry } from '../../audit/audit-log.js';
import { collectionStore, findCollection } from '../../collections/collection-store.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { foldChanged } from '../../collections/fields/nocase.js';
import { findReferences, type Reference } from '../../collections/references/reference.js';
import { USERS } from '../../collections/users-collection.js';
import { withEvent } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import { commitWrites, type Committed } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { imageBefore } from '../store/image-before.js';
import { later, type DecidedUpdate } from '../store/record-update.js';
import { referringTo, TRASHED_WITH, trashedWith } from '../store/referring-documents.js';
import { openRecovery, openRemoval, openTrashing, type StateWrite } from '../store/state-writes.js';

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
  const filter = isBack ? trashedWith(reference, id) : referringTo(reference, id);
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

/** Does to one document what its reference asks; false where that is not so any more. */
async function settleDocument(app: App, settling: Settling, _id: ObjectId): Promise<boolean> {
  const { collection } = settling.reference;
  const update = await decideSettling(app, settling, _id);
  const [{ before, after }] = (await commitWrites(app, [{ collection, id: _id, ...update }])) as [Committed];
  return after !== before;
}

async function decideSettling(app: App, settling: Settling, _id: ObjectId): Promise<DecidedUpdate> {
  const { collection: referred, id, reference, isBack } = settling;
  const { collection, field, onDelete } = reference;
  const text = id.toHexString();
  const isAsked = (stored: StoredDocument): boolean => {
    if (![stored[field]].flat().includes(text)) return false;
    const notes = stored[HIDDEN_FIELD] as Record<string, unknown> | undefined;
    return isBack ? stored.isDeleted === true && notes?.[TRASHED_WITH] !== undefined : stored.isDeleted === false;
  };
  const admit = (stored: StoredDocument | null, exists: Exists): stored is StoredDocument =>
    stored !== null && isAsked(stored) && (isBack || !exists(documentsName(referred), active(id)));
  const write = { collection, id: _id, admit };
  if (isBack) return openRecovery(app, write);
  if (onDelete === 'remove') return openRemoval(app, write);
  return onDelete === 'trash' ? openTrashing(app, write, text) : openClearing(app, write, settling);
}

/** The reference is taken out. */
async function openClearing(
  app: App,
  { collection, admit }: StateWrite,
  { id, reference: { field, isList } }: Settling,
): Promise<DecidedUpdate> {
  const entry = await queueEvents(app, collection, 'update');
  const keepsBefore = imageBefore(app, collection);
  const now = app.clock.now();
  const apply = ({ [field]: held, ...others }: StoredDocument): StoredDocument => {
    const left = isList && [held].flat().filter((value) => value !== id.toHexString());
    return { ...(others as StoredDocument), ...(left && { [field]: left }) };
  };
  return {
    action: 'update',
    apply,
    decide(stored, exists) {
      if (!admit(stored, exists)) return stored;
      const next = foldChanged(collection, stored, { ...apply(stored), updatedAt: later(stored, now) });
      return entry ? withEvent(next, keepsBefore(entry, stored)) : next;
    },
  };
}
