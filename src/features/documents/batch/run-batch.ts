import { serialize, type Document, type ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict, forbidden } from '../../../errors.js';
import { loadMatchers, type WriteStep } from '../../../platform/database/database.js';
import { OURS, takeTurns } from '../../../turns.js';
import type { Caller } from '../../access/caller.js';
import type { StoredBeside } from '../../access/rules/caller-sets.js';
import { USERS } from '../../collections/users-collection.js';
import { REPEATED_REQUESTS } from '../../quota/kept-records.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { writtenId, type RecordWrite } from '../store/record-update.js';
import { TOGETHER_MS, writeRecordsTogether, WriteRefused } from '../store/write-together.js';
import { presentWritten } from '../write/guard-fields.js';
import { runIdempotent } from '../write/idempotency.js';
import { readWritten, requireWriteTarget, type WriteTarget } from '../write/write-target.js';
import { findNewImages } from './earlier-writes.js';
import { planOperation, type BatchOperation, type PlannedOperation } from './plan-operation.js';

/** The document of each operation as it is afterwards; null where it is in the trash. */
export interface OperationResult {
  id: string;
  document: PresentedDocument | null;
}

/** So often a batch is planned again that others came between. */
const MAX_ATTEMPTS = 5;

/**
 * Carries out 1 to 100 operations in their order, all or none, each seeing those before it (writes.md 4). The first
 * refusal refuses all with its own status, and `details` name the operation. With an idempotency key a repeated batch
 * is carried out once, and answered by what is stored then.
 */
export async function runBatch(
  app: App,
  caller: Caller,
  operations: readonly BatchOperation[],
  idempotencyKey: string | null,
): Promise<OperationResult[]> {
  const plan = (ids?: readonly ObjectId[]): Promise<PlannedOperation[]> => planAll(app, caller, operations, ids);
  if (idempotencyKey === null) return carryOut(app, plan);
  const places = await placesOf(app, caller, operations);
  const answerAgain = (ids: readonly ObjectId[]): Promise<OperationResult[]> => showAgain(app, places, ids);
  return runIdempotent(
    app,
    { place: places[0]!, action: 'batch', key: idempotencyKey, body: operations },
    {
      prepare: async (requestId) => ({
        ids: (await plan()).map(({ write }) => writtenId(write)),
        run(ids) {
          // That it was carried out is noted by the very transaction.
          const noted = { collection: REPEATED_REQUESTS, filter: { _id: requestId, isDone: false } };
          const last = { ...noted, update: { $set: { isDone: true } } };
          return carryOut(app, () => plan(ids), { last, otherwise: () => answerAgain(ids) });
        },
      }),
      answerAgain,
    },
  );
}

/**
 * Throws what runBatch would throw now, and changes nothing: the transaction is carried out and taken back by a last
 * step that never matches.
 */
export async function tryBatch(app: App, caller: Caller, operations: readonly BatchOperation[]): Promise<void> {
  const last = { collection: REPEATED_REQUESTS, filter: { _id: null }, matches: true };
  await carryOut(app, () => planAll(app, caller, operations), { last, otherwise: () => Promise.resolve([]) });
}

async function placesOf(app: App, caller: Caller, operations: readonly BatchOperation[]): Promise<WriteTarget[]> {
  const places: WriteTarget[] = [];
  for (const [index, { collection }] of operations.entries()) {
    places.push(await ofOperation(index, () => targetOf(app, caller, collection)));
  }
  return places;
}

interface Alongside {
  last: WriteStep;
  /** The answer where another attempt of the same request was carried out. */
  otherwise: () => Promise<OperationResult[]>;
}

async function carryOut(
  app: App,
  plan: () => Promise<PlannedOperation[]>,
  alongside?: Alongside,
): Promise<OperationResult[]> {
  for (let attempt = 1; ; attempt++) {
    const planned = await plan();
    const writes = planned.map(({ write }) => write);
    try {
      const documents = await writeRecordsTogether(app, writes, alongside?.last);
      return documents.map((document, at) => ({
        id: document._id.toHexString(),
        document: document.isDeleted === false ? presentWritten(document, planned[at]!.place.writer) : null,
      }));
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw error;
      const { index, cause } = error;
      if (index === planned.length) return alongside!.otherwise();
      if (cause || attempt === MAX_ATTEMPTS) throw refusalOf(index, cause ?? refusedTogether());
    }
  }
}

async function planAll(
  app: App,
  caller: Caller,
  operations: readonly BatchOperation[],
  ids?: readonly ObjectId[],
): Promise<PlannedOperation[]> {
  const openMatcher = await loadMatchers();
  const planned: PlannedOperation[] = [];
  const writes: RecordWrite[] = [];
  const beside: StoredBeside = (collection, members) => {
    const matcher = openMatcher(members);
    return findNewImages(collection, writes)
      .filter(({ document, isExact }) => isExact && document.isDeleted === false)
      .flatMap(({ document }): Document[] => (matcher.matches(Buffer.from(serialize(document))) ? [document] : []));
  };
  const turn = takeTurns(OURS, TOGETHER_MS);
  for (const [index, operation] of operations.entries()) {
    await turn();
    const plannedOne = await ofOperation(index, async () => {
      const target = await targetOf(app, caller, operation.collection, beside);
      return planOperation(app, { ...target, earlier: [...writes] }, operation, ids?.[index]);
    });
    planned.push(plannedOne);
    writes.push(plannedOne.write);
  }
  return planned;
}

function targetOf(app: App, caller: Caller, name: string, beside?: StoredBeside): Promise<WriteTarget> {
  if (name === USERS) throw forbidden('USERS_BLOCKED', 'Users are reached through /api/userAuth alone');
  return requireWriteTarget(app, caller, name, beside);
}

/** What a batch that was carried out before has left, as its writer may see it now. */
async function showAgain(
  app: App,
  places: readonly WriteTarget[],
  ids: readonly ObjectId[],
): Promise<OperationResult[]> {
  const results: OperationResult[] = [];
  for (const [index, place] of places.entries()) {
    const found = await readWritten(app, place, ids[index]!).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'DOCUMENT_NOT_FOUND') return null;
      throw error;
    });
    results.push({ id: ids[index]!.toHexString(), document: found && presentWritten(found, place.writer) });
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
  const { kind, code, message, retryAfterSeconds } = error;
  const { details = [{ field: '', rule: code, message }] } = error;
  return new AppError(kind, code, `Operation ${index}: ${message}`, {
    details: details.map((detail) => ({ index, code, ...detail })),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    cause: error,
  });
}

function refusedTogether(): AppError {
  const text = 'The document does not take this operation after those before it, or is being changed by others';
  return conflict('DOCUMENT_CHANGING', text, { retryAfterSeconds: 1 });
}
