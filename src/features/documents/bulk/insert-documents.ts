import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, invalid } from '../../../errors.js';
import { mapInTurns } from '../../../turns.js';
import { runIdempotent } from '../write/idempotency.js';
import { type StoredDocument, visibleDocuments } from '../store/document.js';
import { documentStore, insertRecordsTogether } from '../store/document-store.js';
import { requireCreatable } from '../write/admit-write.js';
import { checkNewDocument } from '../write/new-document.js';
import { placesField } from '../../collections/indexes/document-indexes.js';
import { hasParallelArrays, parallelArrays } from '../store/parallel-arrays.js';
import { Problems } from '../reply/problems.js';
import { referrerOf, type WriteTarget } from '../write/write-target.js';

export const MAX_BULK_DOCUMENTS = 100;

export interface BulkOutcome {
  insertedCount: number;
  ids: string[];
}

/**
 * Stores 1 to 100 documents in one transaction, all or none (decisions.md 3), also for concurrent readers and after a
 * crash at any point. All are checked first. 413 when they are too much for one.
 */
export async function insertDocuments(
  app: App,
  place: WriteTarget,
  body: unknown,
  idempotencyKey: string | null = null,
): Promise<BulkOutcome> {
  if (!Array.isArray(body) || body.length === 0 || body.length > MAX_BULK_DOCUMENTS) {
    throw invalid('INVALID_BODY', `The body must be an array of 1 to ${MAX_BULK_DOCUMENTS} documents`);
  }
  if (idempotencyKey === null) {
    const documents = await readAll(app, place, body);
    await insertTogether(app, place, documents);
    return outcomeOf(documents.map(({ _id }) => _id));
  }
  return runIdempotent(
    app,
    { place, action: 'bulk', key: idempotencyKey, body },
    {
      async prepare() {
        const documents = await readAll(app, place, body);
        return {
          ids: documents.map(({ _id }) => _id),
          async run(ids) {
            const named = documents.map((document, at) => ({ ...document, _id: ids[at]! }));
            await insertTogether(app, place, named);
            return outcomeOf(ids);
          },
        };
      },
      answerAgain: outcomeOf,
    },
  );
}

function outcomeOf(ids: readonly ObjectId[]): BulkOutcome {
  return { insertedCount: ids.length, ids: ids.map((id) => id.toHexString()) };
}

async function readAll(
  app: App,
  { collection, writer }: WriteTarget,
  body: readonly unknown[],
): Promise<StoredDocument[]> {
  const problems = new Problems();
  const now = app.clock.now();
  const documents = await mapInTurns(body, (item, at) => {
    problems.enter(at);
    try {
      return checkNewDocument(collection, item, writer, now, problems);
    } catch (error) {
      throw namingDocument(error, at);
    } finally {
      problems.leave();
    }
  });
  // What does not fit is told first, and then it would mean nothing.
  problems.throwIfAny();
  for (const [at, document] of documents.entries()) {
    try {
      await requireCreatable(writer, document);
    } catch (error) {
      throw namingDocument(error, at);
    }
  }
  // The database would say so too, after it has written some of them.
  const lists = collection.indexes.filter((spec) => placesField(spec) === null);
  const indexes = lists.map((spec) => spec.split(',').map((part) => part.replace(/^-/, '')));
  if (documents.some((document) => indexes.some((paths) => hasParallelArrays(document, paths)))) throw parallelArrays();
  // Made together: batches checked in turns would mingle in the order of creation, and a page could end within one.
  return documents.map((document) => ({ ...document, _id: new ObjectId() }));
}

function namingDocument(error: unknown, at: number): unknown {
  if (!(error instanceof AppError)) return error;
  const { kind, code, details } = error;
  return new AppError(kind, code, `Document ${at}: ${error.message}`, { details, cause: error });
}

/** Stores all or none. A repeated request comes with the ids of its first attempt, which may have succeeded. */
async function insertTogether(app: App, place: WriteTarget, documents: StoredDocument[]): Promise<void> {
  const { collection } = place;
  try {
    await insertRecordsTogether(app, collection, documents, referrerOf(place));
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'DUPLICATE_VALUE')) throw error;
    const stands = { _id: documents[0]!._id, ...visibleDocuments(true) };
    if (!(await documentStore(app, collection).findOne(stands))) throw error;
  }
}
