import type { App } from '../../app.js';
import { AppError, conflict, invalid } from '../../errors.js';
import { isDuplicateKey } from '../../platform/database.js';
import { answerOnce, UNDER_WAY } from './answer-once.js';
import { batchStore, type InsertBatch } from './insert-batch.js';
import { visibleDocuments, type StoredDocument } from './document.js';
import { documentStore, insertPendingRecords, publishPendingRecords, removePendingRecords } from './document-store.js';
import { checkNewDocument } from './new-document.js';
import { hasParallelArrays, parallelArrays } from './parallel-arrays.js';
import { Problems } from './problems.js';
import type { WritePlace } from './write-place.js';

export const MAX_BULK_DOCUMENTS = 100;

const ABANDONED = 'BATCH_ABANDONED';

export interface BulkOutcome {
  insertedCount: number;
  ids: string[];
}

/**
 * Stores 1 to 100 documents, all or none (decisions.md 3). All are checked first. They are then written in a state that nobody can see, and published
 * once one write has decided that the batch stands: a crash before that leaves nothing, a crash after it is finished by `settleBatches`.
 * While that one command runs a reader may see a part of the batch (in the embedded engine it is one transaction unless it takes over 2 ms); before and after, never.
 */
export async function insertDocuments(
  app: App,
  place: WritePlace,
  body: unknown,
  idempotencyKey: string | null = null,
): Promise<BulkOutcome> {
  if (!Array.isArray(body) || body.length === 0 || body.length > MAX_BULK_DOCUMENTS) {
    throw invalid('INVALID_BODY', `The body must be an array of 1 to ${MAX_BULK_DOCUMENTS} documents`);
  }
  if (idempotencyKey === null) {
    const documents = readAll(app, place, body);
    await insertTogether(app, place, documents);
    return outcomeOf(documents);
  }
  const insertOnce = () =>
    answerOnce(app, { place, action: 'bulk', key: idempotencyKey, body }, () => {
      const documents = readAll(app, place, body);
      return {
        ids: documents.map(({ _id }) => _id),
        async run(ids) {
          const named = documents.map((document, at) => ({ ...document, _id: ids[at]! }));
          await insertTogether(app, place, named);
          return outcomeOf(named);
        },
      };
    });
  try {
    return await insertOnce();
  } catch (error) {
    // The attempt that was undone has given its key free, so that this one starts anew under other ids.
    if (error instanceof AppError && error.code === ABANDONED) return insertOnce();
    throw error;
  }
}

function outcomeOf(documents: readonly StoredDocument[]): BulkOutcome {
  return { insertedCount: documents.length, ids: documents.map(({ _id }) => _id.toHexString()) };
}

function readAll(app: App, { collection, writer }: WritePlace, body: readonly unknown[]): StoredDocument[] {
  const problems = new Problems();
  const now = app.clock.now();
  const documents = body.map((item, at) => {
    problems.enter(at);
    try {
      return checkNewDocument(collection, item, writer, now, problems);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      throw new AppError(error.kind, error.code, `Document ${at}: ${error.message}`);
    } finally {
      problems.leave();
    }
  });
  problems.throwIfAny();
  // Indexes look at published documents only, and by then it is too late for a refusal.
  const indexes = collection.indexes.map((spec) => spec.split(',').map((part) => part.replace(/^-/, '')));
  if (documents.some((document) => indexes.some((paths) => hasParallelArrays(document, paths)))) throw parallelArrays();
  return documents;
}

/** The batch bears the id of its first document, so that a repeated request meets its own first attempt. */
async function insertTogether(app: App, { collection }: WritePlace, documents: StoredDocument[]): Promise<void> {
  const ids = documents.map(({ _id }) => _id);
  const batch: InsertBatch = {
    _id: ids[0]!,
    projectId: collection.projectId,
    collectionId: collection._id,
    ids,
    state: 'open',
    createdAt: new Date(app.clock.now()),
  };
  await openBatch(app, batch);
  if (await documentStore(app, collection).findOne({ _id: batch._id, ...visibleDocuments(true) })) {
    await batchStore(app).deleteOne({ _id: batch._id });
    return;
  }
  try {
    await insertPendingRecords(app, collection, documents);
  } catch (error) {
    if (error instanceof AppError) {
      await removePendingRecords(app, collection, ids);
      await batchStore(app).deleteOne({ _id: batch._id });
    }
    throw error;
  }
  const decided = await batchStore(app).updateOne({ _id: batch._id, state: 'open' }, { $set: { state: 'decided' } });
  if (decided.matchedCount === 0) {
    await removePendingRecords(app, collection, ids);
    throw abandoned();
  }
  await publishPendingRecords(app, collection, ids);
  await batchStore(app).deleteOne({ _id: batch._id });
}

async function openBatch(app: App, batch: InsertBatch): Promise<void> {
  try {
    await batchStore(app).insertOne(batch);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    if (await batchStore(app).findOne({ _id: batch._id, state: 'abandoned' })) throw abandoned();
    throw conflict(UNDER_WAY, 'The same request is still being carried out: try again in a moment', {
      retryAfterSeconds: 1,
    });
  }
}

function abandoned(): AppError {
  return conflict(ABANDONED, 'Storing the documents took too long and was undone: try again', { retryAfterSeconds: 1 });
}
