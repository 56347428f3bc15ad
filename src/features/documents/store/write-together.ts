import type { App } from '../../../app.js';
import { AppError, tooLarge } from '../../../errors.js';
import type { WriteStep } from '../../../platform/database/database.js';
import { OURS, ownTurn, takeTurns } from '../../../turns.js';
import { documentsName } from '../../collections/collection.js';
import { withFolded } from '../../collections/fields/nocase.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { withOutbox } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import type { Action } from '../../webhooks/webhook-event.js';
import { untilDecided } from './ask-outside.js';
import type { StoredDocument } from './document.js';
import { runOf, type RecordWrite } from './record-update.js';
import { checkReferences, conditionOf, type ReferenceCheck } from './reference-checks.js';
import { explainWriteError, TRANSACTION_TOO_LARGE } from './refused-writes.js';
import { tellOf } from './tell-of.js';

/** One write of several was refused, so that none was carried out: why, or null where no document met its filter. */
export class WriteRefused extends Error {
  constructor(
    readonly index: number,
    override readonly cause: AppError | null,
    /** What it was planned by is so no longer: it has to be planned again. */
    readonly isStale = false,
  ) {
    super(`write ${index} was refused`);
  }
}

/** As many documents as take less than a turn of the event loop. */
const FEW = 10;
/** What precedes and follows a transaction of many is done in turns of so much; it has one of its own. */
export const TOGETHER_MS = 2;

/**
 * Carries writes out in one transaction, in their order, each seeing those before it; answers the documents as they are
 * afterwards, a removed one as it was. All or, as a WriteRefused says, none; followers and webhooks are told of each,
 * in order. `last` is a step of the service's own that has to match too.
 */
export async function writeRecordsTogether(
  app: App,
  wanted: readonly RecordWrite[],
  last?: WriteStep,
): Promise<StoredDocument[]> {
  const writes = wanted.map(withFoldedValues);
  const plan: PlannedStep[] = [];
  const isLarge = writes.length > FEW;
  const turn = takeTurns(OURS, isLarge ? TOGETHER_MS : Infinity);
  for (const [index, write] of writes.entries()) {
    await turn();
    await ofWrite(index, async () => {
      const checks = 'insert' in write ? await checkReferences(app, write, writes.slice(0, index)) : [];
      const step = await readStep(app, write);
      for (const check of checks) plan.push({ index, step: conditionOf(check), check });
      plan.push({ index, step, isWrite: true });
      if ('update' in write) for (const turn of write.update.follow ?? []) plan.push({ index, step: turn });
    });
  }
  const steps = plan.map(({ step }) => step);
  let written;
  try {
    if (isLarge) await ownTurn();
    written = await untilDecided(() => app.db.writeTogether(last ? [...steps, last] : steps));
    if (isLarge) await ownTurn();
  } catch (error) {
    throw await readRefusal(error, plan, writes.length);
  }
  const documents: StoredDocument[] = [];
  for (const [at, { index, isWrite }] of plan.entries()) {
    if (!isWrite) continue;
    await turn();
    const { before, after } = written[at] as { before: StoredDocument | null; after: StoredDocument | null };
    const write = writes[index]!;
    const action = actionOf(write);
    const document = (after ?? before)!;
    await tellOf(app, write.collection, action, { documents: [document], ...(before && after && { before }) });
    documents.push(document);
  }
  if (writes.some((write) => 'update' in write && write.update.follow?.length)) app.jobs.wake();
  return documents;
}

function actionOf(write: RecordWrite): Action {
  return 'insert' in write ? 'insert' : write.update.action;
}

function withFoldedValues(write: RecordWrite): RecordWrite {
  return 'insert' in write ? { ...write, insert: withFolded(write.collection, write.insert) } : write;
}

/** A step of a transaction and the write that it is, or is a condition of. */
interface PlannedStep {
  index: number;
  step: WriteStep;
  isWrite?: boolean;
  check?: ReferenceCheck;
}

async function readStep(app: App, write: RecordWrite): Promise<WriteStep> {
  const { collection } = write;
  const name = documentsName(collection);
  if ('insert' in write) {
    await requireRoomFor(app, collection.projectId, { documents: [write.insert] });
    return { collection: name, insert: withOutbox(write.insert, await queueEvents(app, collection, 'insert')) };
  }
  return { collection: name, id: write.id, run: runOf(write.update) };
}

async function ofWrite(index: number, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw error instanceof AppError ? new WriteRefused(index, error) : error;
  }
}

/** What the database says of a batch, for its caller; faults that are no refusal stay as they are. */
async function readRefusal(error: unknown, plan: readonly PlannedStep[], lastIndex: number): Promise<unknown> {
  const { step, cause } = error as { step?: unknown; cause?: unknown };
  if (typeof step !== 'number') return error;
  const { index, check }: Partial<PlannedStep> & { index: number } = plan[step] ?? { index: lastIndex };
  if (cause === null) {
    const refusal = (await check?.refusal()) ?? null;
    return new WriteRefused(index, refusal, check !== undefined && refusal === null);
  }
  if (lastIndex > 1 && (cause as { code?: unknown }).code === TRANSACTION_TOO_LARGE) {
    return new WriteRefused(index, tooLarge('DOCUMENT_TOO_LARGE', TOO_MANY_TOGETHER));
  }
  const explained = explainWriteError(cause);
  return explained instanceof AppError ? new WriteRefused(index, explained) : explained;
}

const TOO_MANY_TOGETHER =
  'Too large: what is written together may have 10000 index entries, one for each item of an indexed array';
