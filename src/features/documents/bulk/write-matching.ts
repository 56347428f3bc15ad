import { serialize, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { abandoned, AppError, conflict, retold, tooLarge } from '../../../errors.js';
import { takeTurns } from '../../../scheduler.js';
import type { Collection } from '../../collections/collection.js';
import { allOf } from '../query/keyset-filter.js';
import type { BulkQuery } from '../query/parse-bulk-query.js';
import { listError } from '../reply/query-errors.js';
import { readAgain } from '../reply/reply-size.js';
import { visibleDocuments, type StoredDocument } from '../store/document.js';
import { commitWrites, type DecidedWrite } from '../store/commit-writes.js';
import { documentStore } from '../store/document-store.js';
import { startCascade, type Cascade } from '../store/referring-documents.js';
import { openMatch } from '../store/service-change.js';
import { openRemoval } from '../store/state-writes.js';
import { askHooks } from '../write/ask-hooks.js';
import { openUpdate, readUpdate } from '../write/update-document.js';
import type { WriteTarget } from '../write/write-target.js';

/** The most documents that one request changes. */
export const MAX_MATCHING = 10_000;
/** Documents of one transaction. */
const BATCH = 100;
/** Bytes that the changes of one transaction add up to. */
const BATCH_BYTES = 1024 * 1024;

/** What is done with the documents that match. */
interface Planned {
  /** Prepares the decision about one that matches. */
  open: (id: ObjectId, cascade: Cascade) => DecidedWrite | Promise<DecidedWrite>;
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
  // The same for all of them, so it is read once.
  const conditions = { takesOperators: true };
  const read = readUpdate(place, new ObjectId().toHexString(), body, app.clock.now(), conditions);
  const bytes = serialize({ puts: read.change.steps.map(({ puts }) => puts) }).length;
  return writeMatching(app, place, query, signal, { bytes, open: (id) => openUpdate(app, place, { ...read, id }) });
}

/** Moves every document that matches to the trash, or removes it permanently; else like updateMatching. */
export async function removeMatching(
  app: App,
  place: WriteTarget,
  query: BulkQuery,
  signal?: AbortSignal,
): Promise<number> {
  const { collection } = place;
  const { permanent } = query;
  const admit = (stored: StoredDocument | null): stored is StoredDocument => stored !== null;
  return writeMatching(app, place, query, signal, {
    bytes: 0,
    open: (id, cascade) => openRemoval(app, { collection, id, admit, cascade, permanent }),
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
  place: WriteTarget,
  query: BulkQuery,
  signal: AbortSignal | undefined,
  planned: Planned,
): Promise<number> {
  const { collection } = place;
  const ids = await readAgain(() => findConfirmed(app, collection, query, signal));
  const matches = await openMatch({ ...visibleDocuments(query.includeDeleted), $and: [...query.conditions] });
  const most = Math.max(1, Math.min(BATCH, Math.floor(BATCH_BYTES / Math.max(1, planned.bytes))));
  let size = most;
  let done = 0;
  const turn = takeTurns();
  for (let at = 0; at < ids.length;) {
    await turn();
    if (signal?.aborted) throw abandoned();
    const batch = ids.slice(at, at + size);
    try {
      done += await writeBatch(app, place, batch, matches, planned.open);
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

/** Does to those documents that still match what is decided about them, all or none, and answers their number. */
async function writeBatch(
  app: App,
  { hooked }: WriteTarget,
  ids: readonly ObjectId[],
  matches: (document: StoredDocument) => boolean,
  open: Planned['open'],
): Promise<number> {
  const writes: DecidedWrite[] = [];
  const cascade = startCascade();
  for (const id of ids) {
    const decided = await open(id, cascade);
    writes.push({
      ...decided,
      decide: (stored, ...asking) => (stored && matches(stored) ? decided.decide(stored, ...asking) : stored),
    });
  }
  const naming = (error: AppError, at: number): AppError =>
    retold(error, `Document ${ids[at]!.toHexString()}: ${error.message}`);
  const committed = await commitWrites(app, askHooks(app, hooked, writes, { isOne: false }), { naming });
  return committed.filter(({ before, after }) => after !== before).length;
}

function afterOthers(error: AppError, done: number): AppError {
  return done === 0 ? error : retold(error, `${error.message}. ${done} documents were changed before it, and stay so`);
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
