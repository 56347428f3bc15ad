import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { withAuditEntry } from '../../audit/audit-log.js';
import { collectionStore, findCollection } from '../../collections/collection-store.js';
import type { Collection } from '../../collections/collection.js';
import { findReferences } from '../../collections/references/reference.js';
import { USERS } from '../../collections/users-collection.js';
import { commitWrite } from '../store/commit-writes.js';
import { documentStore } from '../store/document-store.js';
import {
  cascades,
  referringTo,
  CASCADE_REFERENCES,
  trashedWith,
  type CascadePayload,
} from '../store/referring-documents.js';
import { openCascade, cascadeAction, type CascadeStep } from '../store/state-writes.js';

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
export async function cascadeReferences(app: App, referred: ReferredDocument, stop: AbortSignal): Promise<boolean> {
  const collection = await findReferred(app, referred);
  if (!collection) return true;
  for (let pass = 1; pass <= PASSES; pass++) {
    const isBack = await isActive(app, collection, referred.id);
    const result: CascadeResult = { isStopped: false, isOvertaken: false, refusal: null };
    for (const reference of await findReferences(app, collection)) {
      if (isBack ? reference.onDelete !== 'trash' : !cascades(reference)) continue;
      await cascadeOne(app, { collection, id: referred.id, reference, isBack }, result, stop);
    }
    if (result.isStopped) return false;
    if (result.refusal) throw result.refusal;
    if ((await isActive(app, collection, referred.id)) === isBack && !result.isOvertaken) return true;
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

/** What became of a pass. */
interface CascadeResult {
  isStopped: boolean;
  /** A document was not written as others came between. */
  isOvertaken: boolean;
  refusal: AppError | null;
}

/** Applies one reference. Writes an audit entry if any document is affected. */
async function cascadeOne(app: App, step: CascadeStep, result: CascadeResult, stop: AbortSignal): Promise<void> {
  const { collection, id, reference, isBack } = step;
  const filter = isBack ? trashedWith(reference, id) : referringTo(reference, id);
  const first = await nextBatch(app, reference.collection, filter, null);
  if (first.length === 0) return;
  const done = cascadeAction(step);
  const input = { collection: collection.name, id: id.toHexString(), referring: reference.collection.name, done };
  const act = {
    actor: 'system',
    action: 'references cascade',
    input: { ...input, project: collection.projectId.toHexString() },
  };
  await withAuditEntry(app, act, async () => {
    for (let batch = first; batch.length > 0 && !result.isStopped;) {
      for (const { _id } of batch) {
        if (stop.aborted) result.isStopped = true;
        if (result.isStopped) return;
        try {
          if (!(await cascadeDocument(app, step, _id))) result.isOvertaken = true;
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          // What cannot come back stays in the trash; what has to go is tried again.
          if (!isBack) result.refusal = error;
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
async function cascadeDocument(app: App, step: CascadeStep, _id: ObjectId): Promise<boolean> {
  const { before, after } = await commitWrite(app, await openCascade(app, step, _id));
  return after !== before;
}

export const cascadeReferencesJob: JobDefinition<App, CascadePayload> = {
  name: CASCADE_REFERENCES.name,
  retry: { delaysMs: [1_000, 10_000, 60_000, 600_000] },
  async run(app, { projectId, collectionId, id }, { signal, stopping }) {
    const referred = {
      projectId: new ObjectId(projectId),
      collectionId: new ObjectId(collectionId),
      id: new ObjectId(id),
    };
    const isDone = await cascadeReferences(app, referred, AbortSignal.any([signal, stopping]));
    return isDone ? undefined : { again: new Date(app.clock.now()) };
  },
};
