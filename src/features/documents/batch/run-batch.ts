import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, forbidden, invalid, retold, tooLarge } from '../../../errors.js';
import { OURS, takeTurns } from '../../../scheduler.js';
import type { Caller } from '../../access/caller.js';
import { documentsName } from '../../collections/collection.js';
import { USERS } from '../../collections/users-collection.js';
import { hookedCaller } from '../../hooks/before-calls.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { type DecidedWrite, TOGETHER_MS, commitWrites } from '../store/commit-writes.js';
import { TRANSACTION_TOO_LARGE } from '../store/explain-write-error.js';
import { startCascade } from '../store/referring-documents.js';
import type { StoredDocument } from '../store/document.js';
import type { StateWrite } from '../store/state-writes.js';
import { askHooks } from '../write/ask-hooks.js';
import { decideRecovery, decideRemoval } from '../write/change-state.js';
import { presentWritten } from '../write/admit-write.js';
import { type Mark, executeOnce } from '../write/idempotency.js';
import { readIfMatch } from '../write/if-match.js';
import { openInsert } from '../write/insert-document.js';
import { readNewDocument } from '../write/new-document.js';
import { openUpdate, readUpdate } from '../write/update-document.js';
import { type Earlier, type OpenedUpsert, openUpsert, untilFound } from '../write/insert-or-update.js';
import { type WriteTarget, findReadable, requireDocumentId, requireWriteTarget } from '../write/write-target.js';

/** The document of each operation as it is afterwards; null where it is in the trash. */
export interface OperationResult {
  id: string;
  document: PresentedDocument | null;
}

/**
 * Carries out 1 to 100 operations in their order, all or none, each seeing those before it (writes.md 4). The first
 * refusal refuses all with its own status, and `details` name the operation. With an idempotency key a repeated batch
 * is carried out once, and answered by what is stored then.
 */
export async function runBatch(
  app: App,
  caller: Caller,
  operations: readonly BatchOperation[],
  key: string | null,
): Promise<OperationResult[]> {
  const attempt = async (mark: Mark, upserts: Upserts): Promise<OperationResult[]> => {
    const { places, writes } = await planAll(app, caller, operations, upserts);
    const first = await mark(writes.map(({ id }) => id));
    const asked = askHooks(app, hookedCaller(caller), writes, { isOne: false, idempotencyKey: key });
    const committed = await commitWrites(app, asked, { first, naming: ofBatch });
    return committed.map(({ after }, at) => ({
      id: after!._id.toHexString(),
      document: after!.isDeleted ? null : presentWritten(after!, places[at]!.writer),
    }));
  };
  const place = key === null ? null : await targetOf(app, caller, operations, 0);
  const request = { place: place!, action: 'batch' as const, key, body: operations };
  const left: Upserts['left'] = [];
  const { done, again } = await executeOnce(app, request, (mark) =>
    untilFound((opened, unseen) => attempt(mark, { opened, unseen, left })),
  );
  return done ?? showAgain(app, caller, operations, again);
}

/** Ends a transaction of which nothing is to stay. */
class TriedOut extends Error {}

/** Throws what runBatch would throw now, and changes nothing: the transaction is carried out and taken back. */
export async function tryBatch(app: App, caller: Caller, operations: readonly BatchOperation[]): Promise<void> {
  const { writes } = await planAll(app, caller, operations);
  const { collection, id } = writes[0]!;
  const last: DecidedWrite = {
    ...{ collection, id, action: 'delete', listeners: null },
    decide(_, exists) {
      // By then all before it is written.
      exists(documentsName(collection), { _id: null });
      throw new TriedOut();
    },
  };
  try {
    await commitWrites(app, [...writes, last], { naming: ofBatch });
  } catch (error) {
    if (!(error instanceof TriedOut)) throw error;
  }
}

function ofBatch(error: AppError, index: number): AppError {
  const isTogether = (error.cause as { code?: unknown } | undefined)?.code === TRANSACTION_TOO_LARGE;
  return refusalOf(index, isTogether ? tooLarge('DOCUMENT_TOO_LARGE', TOO_MANY_TOGETHER) : error);
}

const TOO_MANY_TOGETHER =
  'Too large: what is written together may have 10000 index entries, one for each item of an indexed array';

async function planAll(
  app: App,
  caller: Caller,
  operations: readonly BatchOperation[],
  upserts: Upserts = { opened: [], unseen: new Set(), left: [] },
): Promise<{ places: WriteTarget[]; writes: DecidedWrite[] }> {
  const places: WriteTarget[] = [];
  const writes: DecidedWrite[] = [];
  const earlier: Earlier[] = [];
  const { left } = upserts;
  const cascade = startCascade();
  const turn = takeTurns(OURS, TOGETHER_MS);
  for (const [index, operation] of operations.entries()) {
    await turn();
    const place = await targetOf(app, caller, operations, index);
    const open = { ...upserts, earlier: [...writes], cascade, before: [...earlier] };
    const { write, document } = await ofOperation(index, async () => planOperation(app, place, operation, open));
    const leftBy = (): StoredDocument | null | undefined =>
      document === undefined && left[index]?.id.equals(write.id) ? left[index].after : document;
    earlier.push({ write, left: leftBy });
    writes.push({
      ...write,
      decide(...asked) {
        const after = write.decide(...asked);
        left[index] = { id: write.id, after };
        return after;
      },
    });
    places.push(place);
  }
  return { places, writes };
}

function targetOf(
  app: App,
  caller: Caller,
  operations: readonly BatchOperation[],
  index: number,
): Promise<WriteTarget> {
  return ofOperation(index, async () => {
    const { collection } = operations[index]!;
    if (collection === USERS) throw forbidden('USERS_BLOCKED', 'Users are reached through /api/userAuth alone');
    return requireWriteTarget(app, caller, collection);
  });
}

/** What a batch that was carried out before has left, as its writer may see it now. */
async function showAgain(
  app: App,
  caller: Caller,
  operations: readonly BatchOperation[],
  ids: readonly ObjectId[],
): Promise<OperationResult[]> {
  const results: OperationResult[] = [];
  for (const [index, id] of ids.entries()) {
    const place = await targetOf(app, caller, operations, index);
    const found = await findReadable(app, place, id);
    const isThere = found?.isDeleted === false;
    results.push({ id: id.toHexString(), document: isThere ? presentWritten(found, place.writer) : null });
  }
  return results;
}

/** Work on one operation, whose refusal is that of the batch and names it. */
async function ofOperation<T>(index: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof AppError ? refusalOf(index, error) : error;
  }
}

function refusalOf(index: number, error: AppError): AppError {
  const { code, message } = error;
  const { details = [{ field: '', rule: code, message }] } = error;
  return retold(
    error,
    `Operation ${index}: ${message}`,
    details.map((detail) => ({ index, code, ...detail })),
  );
}

/** One operation of a batch (writes.md 4). */
export interface BatchOperation {
  op: 'insert' | 'update' | 'upsert' | 'remove' | 'recover';
  collection: string;
  id?: string;
  body?: Record<string, unknown>;
  /** The ETag of the version that is meant. */
  ifMatch?: string;
  /** The unique fields of an upsert. */
  by?: string[];
}

/** Its upserts, documents that these may not show, and what its operations left when they were last tried. */
interface Upserts {
  opened: OpenedUpsert[];
  unseen: Set<string>;
  left: { id: ObjectId; after: StoredDocument | null }[];
}

/** What the operations of a batch have led to so far. */
interface OpenBatch extends Required<Pick<StateWrite, 'earlier' | 'cascade'>>, Pick<Upserts, 'opened' | 'unseen'> {
  before: readonly Earlier[];
}

/** A planned operation, and the document that it leaves where that is known before. */
interface Planned {
  write: DecidedWrite;
  document?: StoredDocument | null;
}

/** Plans one operation: everything is checked that needs no stored document, the rest is decided in the transaction. */
async function planOperation(
  app: App,
  place: WriteTarget,
  { op, id: idText, body, ifMatch, by }: BatchOperation,
  { before, opened, unseen, ...batch }: OpenBatch,
): Promise<Planned> {
  const now = app.clock.now();
  const { collection } = place;
  if ((by !== undefined) !== (op === 'upsert')) {
    throw invalid('INVALID_BODY', '"upsert" needs the unique fields "by", which no other operation takes');
  }
  if (op === 'insert' || op === 'upsert') {
    if (idText !== undefined || ifMatch !== undefined) {
      throw invalid('INVALID_BODY', `"${op}" takes neither id nor ifMatch: a document brings its own id as _id`);
    }
  }
  if (op === 'insert') {
    const document = readNewDocument(collection, body ?? {}, place.writer, now);
    return { write: await openInsert(app, place, document), document };
  }
  if (op === 'upsert') {
    const upsert = await openUpsert(app, place, { by: by!, body: body ?? {} }, { earlier: before, unseen });
    opened.push(upsert);
    return upsert;
  }
  if (idText === undefined) throw invalid('INVALID_BODY', `"${op}" needs the id of a document`);
  if (op === 'update') {
    const conditions = { expected: readIfMatch(ifMatch), takesOperators: true };
    return { write: await openUpdate(app, place, readUpdate(place, idText, body ?? {}, now, conditions)) };
  }
  const id = requireDocumentId(idText);
  const expected = readIfMatch(ifMatch);
  if (body !== undefined) throw invalid('INVALID_BODY', `"${op}" takes no body`);
  if (op === 'recover') return { write: await decideRecovery(app, place, id, expected) };
  return { write: await decideRemoval(app, place, id, { expected, ...batch }), document: null };
}
