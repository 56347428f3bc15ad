import { serialize, type Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { abandoned, AppError, conflict, tooLarge } from '../../../errors.js';
import { takeTurns } from '../../../turns.js';
import type { Collection } from '../../collections/collection.js';
import { allOf } from '../query/keyset-filter.js';
import type { BulkQuery } from '../query/parse-bulk-query.js';
import { listError } from '../reply/query-errors.js';
import { readAgain } from '../reply/reply-size.js';
import { visibleDocuments } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import type { RecordWrite } from '../store/record-update.js';
import { writeRecordsTogether, WriteRefused } from '../store/write-together.js';
import { nextVersion } from '../write/if-match.js';
import { findMoment, type StoredMoment } from '../write/stored-moment.js';
import type { WriteTarget } from '../write/write-target.js';
import { explainRefusal } from '../write/update-document.js';
import { planUpdate } from '../write/plan-update.js';

/** The most documents that one request changes. */
export const MAX_MATCHING = 10_000;
/** Documents of one transaction. */
const BATCH = 100;
/** Bytes that the changes of one transaction add up to. */
const BATCH_BYTES = 1024 * 1024;
/** So often a batch is tried again whose documents others change. */
const ATTEMPTS = 5;

type RecordChanged = Exclude<RecordWrite, { insert: unknown }>;

/** One change for each document that matches. */
interface Planned {
  /** The state in which a document has to be. */
  state: Record<string, unknown>;
  /** The write of one of them; `filter` says which. */
  write(filter: Document & { _id: ObjectId }): RecordChanged;
  /** Throws why a document that matches does not take the write. */
  explain(found: StoredMoment): Promise<void>;
  /** Bytes that one write brings. */
  bytes: number;
}

/**
 * Changes every active document that matches, with the secret key's rights, and answers how many (writes.md 4). The
 * body is that of an update, operators included. 409 COUNT_DIFFERS with the true count unless `confirm` says it, 413
 * TOO_MANY_DOCUMENTS. Carried out in batches, each whole: a refusal ends it and says how many were changed
 * before. A document that no longer matches when its turn comes is left out.
 */
export async function updateMatching(
  app: App,
  place: WriteTarget,
  query: BulkQuery,
  body: unknown,
  signal?: AbortSignal,
): Promise<number> {
  const { collection } = place;
  const now = app.clock.now();
  // The same for all of them, so it is read once.
  const planned = planUpdate(place, new ObjectId().toHexString(), body, now, { takesOperators: true });
  const { own, record } = planned;
  const state = { isDeleted: false } as const;
  return writeMatching(app, collection, query, signal, {
    state,
    bytes: serialize({ record }).length,
    write: (filter) => ({
      collection,
      id: filter._id,
      filter: { ...filter, $and: [...((filter.$and as Document[] | undefined) ?? []), ...own] },
      record: { ...record, action: 'update', set: { ...record.set, updatedAt: nextVersion(now, filter._id) } },
    }),
    explain: (found) => explainRefusal(place, planned, found),
  });
}

/** Moves every document that matches to the trash, or removes it for good; else like updateMatching. */
export async function removeMatching(
  app: App,
  { collection }: WriteTarget,
  query: BulkQuery,
  signal?: AbortSignal,
): Promise<number> {
  const deletedAt = new Date(app.clock.now());
  const trashed = (id: ObjectId) => {
    const set = { isDeleted: true, deletedAt, updatedAt: nextVersion(deletedAt.getTime(), id) };
    return { record: { action: 'delete', set, isOwn: true } } as const;
  };
  return writeMatching(app, collection, query, signal, {
    state: visibleDocuments(query.includeDeleted),
    bytes: 0,
    write: (filter) => ({
      ...{ collection, id: filter._id, filter },
      ...(query.permanent ? { removed: true } : trashed(filter._id)),
    }),
    explain: () => Promise.resolve(),
  });
}

/** The number of documents that match, as `confirm` has to say it. */
export async function countWhatMatches(app: App, { collection }: WriteTarget, query: BulkQuery): Promise<number> {
  const visible = visibleDocuments(query.includeDeleted);
  const options = { maxTimeMS: app.config.queryTimeoutMs };
  const filter = allOf([visible, ...query.conditions]);
  return readAgain(() => documentStore(app, collection).countDocuments(filter, options)).catch((error: unknown) =>
    Promise.reject(listError(error) as Error),
  );
}

async function writeMatching(
  app: App,
  collection: Collection,
  query: BulkQuery,
  signal: AbortSignal | undefined,
  planned: Planned,
): Promise<number> {
  const ids = await readAgain(() => findConfirmed(app, collection, query, signal));
  const most = Math.max(1, Math.min(BATCH, Math.floor(BATCH_BYTES / Math.max(1, planned.bytes))));
  let size = most;
  let done = 0;
  const turn = takeTurns();
  for (let at = 0; at < ids.length;) {
    await turn();
    if (signal?.aborted) throw abandoned();
    const batch = ids.slice(at, at + size);
    try {
      done += await writeBatch(app, collection, query, planned, batch);
      at += batch.length;
    } catch (error) {
      const isLarge = error instanceof AppError && error.code === 'DOCUMENT_TOO_LARGE' && size > 1;
      if (!isLarge) throw error instanceof AppError ? afterOthers(error, done) : error;
      size = Math.ceil(size / 4);
    }
  }
  return done;
}

/** The ids of the documents that match, as many as were confirmed. */
async function findConfirmed(
  app: App,
  collection: Collection,
  { conditions, includeDeleted, confirm }: BulkQuery,
  signal: AbortSignal | undefined,
): Promise<ObjectId[]> {
  const filter = allOf([visibleDocuments(includeDeleted), ...conditions]);
  const maxTimeMS = app.config.queryTimeoutMs;
  const stored = documentStore(app, collection);
  try {
    const cursor = stored.find(filter, { signal, maxTimeMS }).project<{ _id: ObjectId }>({ _id: 1 });
    const found = await cursor.limit(MAX_MATCHING + 1).toArray();
    const isMore = found.length > MAX_MATCHING;
    const count = isMore ? await stored.countDocuments(filter, { maxTimeMS, signal }) : found.length;
    if (isMore) throw tooManyDocuments(count);
    if (confirm !== count) throw countDiffers(count, confirm);
    return found.map(({ _id }) => _id);
  } catch (error) {
    throw error instanceof AppError ? error : listError(error, signal);
  }
}

/** Writes those of the documents that still match, all of them or none, and answers their number. */
async function writeBatch(
  app: App,
  collection: Collection,
  { conditions }: BulkQuery,
  planned: Planned,
  ids: readonly ObjectId[],
): Promise<number> {
  const matching = (_id: ObjectId): Document & { _id: ObjectId } => ({
    _id,
    ...planned.state,
    $and: [...conditions],
  });
  let left = [...ids];
  for (let attempt = 1; left.length > 0;) {
    try {
      await carryOut(
        app,
        left.map((id) => planned.write(matching(id))),
      );
      return left.length;
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw error;
      const id = left[error.index]!;
      if (error.cause) throw ofDocument(error.cause, id);
      const found = await findMoment(app, collection, matching(id));
      if (found) {
        await planned.explain(found).catch((reason: unknown) => {
          throw reason instanceof AppError ? ofDocument(reason, id) : reason;
        });
        if (attempt++ === ATTEMPTS) throw changing();
      } else {
        left = left.filter((other) => other !== id);
      }
    }
  }
  return 0;
}

async function carryOut(app: App, writes: readonly RecordChanged[]): Promise<void> {
  const makesRoom = writes.every((write) => 'removed' in write || write.record.action === 'delete');
  const run = (): Promise<unknown> => writeRecordsTogether(app, writes);
  await (makesRoom ? app.db.useReserve(run) : run());
}

function ofDocument(error: AppError, id: ObjectId): AppError {
  const { kind, code, message, details } = error;
  return new AppError(kind, code, `Document ${id.toHexString()}: ${message}`, { details, cause: error });
}

function afterOthers(error: AppError, done: number): AppError {
  if (done === 0) return error;
  const { kind, code, message, details, retryAfterSeconds } = error;
  const text = `${message}. ${done} documents were changed before it, and stay so`;
  return new AppError(kind, code, text, { details, retryAfterSeconds, cause: error });
}

function countDiffers(count: number, confirm: number | null): AppError {
  const said = confirm === null ? 'without it nothing is changed' : `not ${confirm}`;
  const matching = count === 1 ? '1 document matches' : `${count} documents match`;
  const message = `${matching}: say so with confirm=${count}, ${said}`;
  return conflict('COUNT_DIFFERS', message, { details: [{ field: 'confirm', rule: 'count', message: String(count) }] });
}

function tooManyDocuments(count: number): AppError {
  const message = `${count} documents match, and one request changes at most ${MAX_MATCHING}: narrow the filter`;
  return tooLarge('TOO_MANY_DOCUMENTS', message);
}

function changing(): AppError {
  const text = 'The documents are being changed by others: try again';
  return conflict('DOCUMENT_CHANGING', text, { retryAfterSeconds: 1 });
}
