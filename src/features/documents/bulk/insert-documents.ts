import { setTimeout as wait } from 'node:timers/promises';
import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, invalid } from '../../../errors.js';
import { mapInTurns } from '../../../turns.js';
import type { Collection } from '../../collections/collection.js';
import { referencesOf } from '../../collections/references/reference.js';
import { runIdempotent } from '../write/idempotency.js';
import type { StoredDocument } from '../store/document.js';
import {
  documentStore,
  insertHiddenRecords,
  insertRecordsTogether,
  relayInserted,
  removeHiddenRecords,
} from '../store/document-store.js';
import {
  ABANDONED,
  abandonBatch,
  batchAbandoned,
  findBatch,
  forgetBatch,
  openBatch,
  showBatch,
} from './hidden-batch.js';
import { findVisible } from '../store/shown-documents.js';
import { requireCreatable } from '../write/admit-write.js';
import { checkNewDocument } from '../write/new-document.js';
import { placesField } from '../../collections/indexes/document-indexes.js';
import { hasParallelArrays, parallelArrays } from '../store/parallel-arrays.js';
import { Problems } from '../reply/problems.js';
import { referrerOf } from '../write/settle-place.js';
import type { WriteTarget } from '../write/write-target.js';

export const MAX_BULK_DOCUMENTS = 100;

/** A database that was away for a moment is asked again before the answer has to be that nobody knows. */
const DECIDE_ATTEMPTS = 4;
const DECIDE_PAUSE_MS = 500;

export interface BulkOutcome {
  insertedCount: number;
  ids: string[];
}

/**
 * Stores 1 to 100 documents, all or none (decisions.md 3), also for concurrent readers and after a crash at any
 * point. All are checked first. The embedded engine stores them in one transaction (413 when that would take too long),
 * as does a MongoDB that has transactions where they refer to others; elsewhere they are hidden until one write shows
 * them.
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
  const insertOnce = () =>
    runIdempotent(
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
  try {
    return await insertOnce();
  } catch (error) {
    // The attempt that was undone has given its key free, so that this one starts again under other ids.
    if (error instanceof AppError && error.code === ABANDONED) return insertOnce();
    throw error;
  }
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
  // What they refer to has to stay until they stand: in a transaction, where there are such.
  const isHeld = app.db.writeTogether !== undefined && referencesOf(collection).length > 0;
  if (!app.db.insertTogether && !isHeld) return insertInSeries(app, place, documents);
  try {
    await insertRecordsTogether(app, collection, documents, referrerOf(place));
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'DUPLICATE_VALUE')) throw error;
    const stands = { _id: documents[0]!._id, ...(await findVisible(app, collection, true)) };
    if (!(await documentStore(app, collection).findOne(stands))) throw error;
  }
}

/**
 * The documents are written hidden, then one write shows them. Whatever goes wrong before that leaves a batch that
 * never comes to stand.
 */
async function insertInSeries(app: App, place: WriteTarget, documents: StoredDocument[]): Promise<void> {
  const { collection } = place;
  const ids = documents.map(({ _id }) => _id);
  const batch = ids[0]!;
  const number = await openBatch(app, collection, ids);
  const undo = async (isOver = true): Promise<void> => {
    await abandonBatch(app, collection, batch);
    await removeHiddenRecords(app, collection, { ids, number });
    if (isOver) await forgetBatch(app, collection, batch);
  };
  try {
    const visible = await findVisible(app, collection, true);
    if (await documentStore(app, collection).findOne({ _id: batch, ...visible })) {
      await undo();
      return;
    }
    await insertHiddenRecords(app, collection, documents, number, referrerOf(place));
  } catch (error) {
    // A write that was not answered may still be carried out: the batch stays hidden then. What cannot be undone now is
    // when batches are settled.
    await undo(error instanceof AppError).catch((cause: unknown) =>
      app.log.warn({ err: cause }, 'a bulk insert is undone later'),
    );
    throw error;
  }
  if (!(await decide(app, collection, batch))) {
    await removeHiddenRecords(app, collection, { ids, number });
    throw batchAbandoned();
  }
  // It stands: a later error is not a refusal, and the sweep finds events that are not relayed now.
  await relayInserted(app, collection, ids).catch((cause: unknown) => app.log.error({ err: cause }, 'events wait'));
}

/**
 * True if the batch stands, false if it was abandoned. A write without an answer may have been carried out, so only the
 * database's word counts.
 */
async function decide(app: App, collection: Collection, batch: ObjectId): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      if (await showBatch(app, collection, batch)) return true;
      // After an attempt without an answer it may stand already.
      return attempt > 1 && (await findBatch(app, collection, batch)) === null;
    } catch (error) {
      if (attempt === DECIDE_ATTEMPTS) throw error;
      await wait(attempt * DECIDE_PAUSE_MS);
    }
  }
}
