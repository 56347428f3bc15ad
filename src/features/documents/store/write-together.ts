import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict } from '../../../errors.js';
import type { WriteStep } from '../../../platform/database/database.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { findShown } from '../../collections/indexes/insert-series.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { outboxOperators, withOutbox } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import type { StoredDocument } from './document.js';
import { tellOf } from './document-store.js';
import { together, updateOf, type RecordChange } from './record-update.js';
import { explainWriteError, PathBlocked } from './refused-writes.js';

/** A write among several: a new document, or the change of the one that meets the filter. */
export type TogetherWrite = { collection: Collection } & (
  { insert: StoredDocument } | { id: ObjectId; filter: Record<string, unknown>; record: RecordChange }
);

/** One write of several was refused, so that none was carried out: why, or null where no document met its filter. */
export class WriteRefused extends Error {
  constructor(
    readonly index: number,
    override readonly cause: AppError | null,
  ) {
    super(`write ${index} was refused`);
  }
}

/**
 * Carries writes out in one transaction, in their order, each seeing those before it; answers the documents as they are
 * afterwards. All or, as a WriteRefused says, none; followers and webhooks are told of each, in order. `last` is a
 * write of the service's own that has to match too. 409 TRANSACTIONS_UNAVAILABLE where there are no transactions.
 */
export async function writeRecordsTogether(
  app: App,
  writes: readonly TogetherWrite[],
  last?: WriteStep,
): Promise<StoredDocument[]> {
  if (!app.db.writeTogether) throw transactionsUnavailable();
  const steps: WriteStep[] = [];
  for (const [index, write] of writes.entries()) steps.push(await readStep(app, write, index));
  let written;
  try {
    written = await app.db.writeTogether(last ? [...steps, last] : steps);
  } catch (error) {
    throw readRefusal(error);
  }
  const documents = written.slice(0, writes.length).map(({ after }) => after as StoredDocument);
  for (const [index, write] of writes.entries()) {
    const action = 'insert' in write ? 'insert' : write.record.action;
    const before = (written[index]!.before as StoredDocument | null) ?? undefined;
    await tellOf(app, write.collection, action, { documents: [documents[index]!], before });
  }
  return documents;
}

async function readStep(app: App, write: TogetherWrite, index: number): Promise<WriteStep> {
  const { collection } = write;
  const name = documentsName(collection);
  try {
    if ('insert' in write) {
      await requireRoomFor(app, collection.projectId, { documents: [write.insert] });
      return { collection: name, insert: withOutbox(write.insert, await queueEvents(app, collection, 'insert')) };
    }
    const { record, filter } = write;
    const { isOwn = false, set, operators } = record;
    if (!isOwn) await requireRoomFor(app, collection.projectId, { change: { ...operators, ...set } });
    const entry = await queueEvents(app, collection, record.action);
    const update = together(outboxOperators(entry), updateOf(record));
    return { collection: name, filter: { ...filter, ...(await findShown(app, collection._id)) }, update };
  } catch (error) {
    throw error instanceof AppError ? new WriteRefused(index, error) : error;
  }
}

/** What the database says of a batch, for its caller; faults that are no refusal stay as they are. */
function readRefusal(error: unknown): unknown {
  const { step, cause } = error as { step?: unknown; cause?: unknown };
  if (typeof step !== 'number') return error;
  if (cause === null) return new WriteRefused(step, null);
  const explained = explainWriteError(cause);
  if (explained instanceof PathBlocked) return new WriteRefused(step, null);
  return explained instanceof AppError ? new WriteRefused(step, explained) : explained;
}

function transactionsUnavailable(): AppError {
  const text = 'A batch needs the embedded engine: send its operations one by one';
  return conflict('TRANSACTIONS_UNAVAILABLE', text);
}
