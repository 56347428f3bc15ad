import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, invalid, retold, tooLarge } from '../../../errors.js';
import { mapInTurns } from '../../../scheduler.js';
import { commitWrites } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import { askHooks } from '../write/ask-hooks.js';
import { openInserts, requireCreatable } from '../write/insert-document.js';
import { executeOnce } from '../write/idempotency.js';
import { checkNewDocument } from '../write/new-document.js';
import { Problems } from '../reply/problems.js';
import type { WriteTarget } from '../write/write-target.js';

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
  key: string | null = null,
): Promise<BulkOutcome> {
  if (!Array.isArray(body) || body.length === 0 || body.length > MAX_BULK_DOCUMENTS) {
    throw invalid('INVALID_BODY', `The body must be an array of 1 to ${MAX_BULK_DOCUMENTS} documents`);
  }
  const { done, again } = await executeOnce(app, { place, action: 'bulk', key, body }, async (mark) => {
    const documents = await readAll(app, place, body);
    const ids = documents.map(({ _id }) => _id);
    const first = await mark(ids);
    const writes = await openInserts(app, place, documents);
    const asked = askHooks(app, place.hooked, writes, { isOne: false, idempotencyKey: key });
    await commitWrites(app, asked, { first, naming: ofBulk });
    return ids;
  });
  const ids = done ?? again;
  return { insertedCount: ids.length, ids: ids.map((id) => id.toHexString()) };
}

/** Documents are named by what their writer can tell them by. */
function ofBulk(error: AppError, at: number): unknown {
  if (error.code === 'DOCUMENT_TOO_LARGE') return batchTooLarge();
  return error.code === 'DUPLICATE_VALUE' ? error : namingDocument(error, at);
}

function batchTooLarge(): AppError {
  const text = 'The documents have too many index entries to be stored all at once: send fewer in one request';
  return tooLarge('BATCH_TOO_LARGE', text);
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
  // What does not fit is reported first.
  problems.throwIfAny();
  for (const [at, document] of documents.entries()) {
    try {
      requireCreatable(writer, document);
    } catch (error) {
      throw namingDocument(error, at);
    }
  }
  // Made together: batches checked in turns would mingle in the order of creation, and a page could end within one.
  return documents.map((document) => ({ ...document, _id: new ObjectId() }));
}

function namingDocument(error: unknown, at: number): unknown {
  return error instanceof AppError ? retold(error, `Document ${at}: ${error.message}`) : error;
}
