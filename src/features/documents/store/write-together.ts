import type { App } from '../../../app.js';
import { AppError, tooLarge } from '../../../errors.js';
import type { WriteStep } from '../../../platform/database/database.js';
import { OURS, ownTurn, takeTurns } from '../../../turns.js';
import { documentsName } from '../../collections/collection.js';
import { withFolded, withFoldedPaths } from '../../collections/fields/nocase.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { outboxOperators, withOutbox } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import type { Action } from '../../webhooks/webhook-event.js';
import { removeAttachedLater } from './attached-files.js';
import { untilDecided } from './ask-outside.js';
import type { StoredDocument } from './document.js';
import {
  checkReferences,
  concernsReferences,
  conditionOf,
  type CheckedWrite,
  type ReferenceCheck,
} from './reference-checks.js';
import { removedUpdate, runOf, together, updateOf, type RecordWrite } from './record-update.js';
import { explainWriteError, PathBlocked, TRANSACTION_TOO_LARGE } from './refused-writes.js';
import { settleLater } from './settle-later.js';
import { tellOf } from './tell-of.js';
import { noteVersion } from './version.js';

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
  const checked: CheckedWrite[] = [];
  const isLarge = writes.length > FEW;
  const turn = takeTurns(OURS, isLarge ? TOGETHER_MS : Infinity);
  for (const [index, write] of writes.entries()) {
    await turn();
    await ofWrite(index, async () => {
      const planned = await planReferences(app, write, writes.slice(0, index));
      checked.push(planned);
      const step = await readStep(app, planned.write);
      // Whether the writer may at all comes first, and nothing is written before all is checked.
      if (planned.checks.length > 0 && 'filter' in step) {
        const { collection, filter } = step;
        plan.push({ index, step: { collection, filter, matches: true } });
      }
      for (const check of planned.checks) plan.push({ index, step: conditionOf(check), check });
      plan.push({ index, step, isWrite: true });
    });
  }
  for (const write of writes) if ('removed' in write) await removeAttachedLater(app, write.collection, write.id);
  const steps = plan.map(({ step }) => step);
  const settle = await settleLater(app, checked);
  let written;
  try {
    if (isLarge) await ownTurn();
    written = await untilDecided(() => app.db.writeTogether(last ? [...steps, last] : steps));
    if (isLarge) await ownTurn();
  } catch (error) {
    throw await readRefusal(error, plan, writes.length);
  }
  await settle();
  const documents: StoredDocument[] = [];
  for (const [at, { index, isWrite }] of plan.entries()) {
    if (!isWrite) continue;
    await turn();
    const { before, after } = written[at] as { before: StoredDocument | null; after: StoredDocument | null };
    const write = writes[index]!;
    const action = actionOf(write);
    const document = (after ?? before)!;
    if ('update' in write) noteVersion(document.updatedAt.getTime(), document._id);
    await tellOf(app, write.collection, action, { documents: [document], ...(before && { before }) });
    documents.push(document);
  }
  return documents;
}

function actionOf(write: RecordWrite): Action {
  if ('insert' in write) return 'insert';
  if ('update' in write) return 'update';
  return 'removed' in write ? 'delete' : write.record.action;
}

function withFoldedValues(write: RecordWrite): RecordWrite {
  if ('insert' in write) return { ...write, insert: withFolded(write.collection, write.insert) };
  return 'record' in write ? { ...write, record: withFoldedPaths(write.collection, write.record) } : write;
}

/** A step of a transaction and the write that it is, or is a condition of. */
interface PlannedStep {
  index: number;
  step: WriteStep;
  isWrite?: boolean;
  check?: ReferenceCheck;
}

async function planReferences(app: App, write: RecordWrite, earlier: readonly RecordWrite[]): Promise<CheckedWrite> {
  if (!(await concernsReferences(app, write))) return { write, checks: [], settled: null };
  return checkReferences(app, write, earlier);
}

async function readStep(app: App, write: RecordWrite): Promise<WriteStep> {
  const { collection } = write;
  const name = documentsName(collection);
  if ('insert' in write) {
    await requireRoomFor(app, collection.projectId, { documents: [write.insert] });
    return { collection: name, insert: withOutbox(write.insert, await queueEvents(app, collection, 'insert')) };
  }
  if ('update' in write) return { collection: name, id: write.id, run: runOf(write.update) };
  const { filter } = write;
  if ('removed' in write) {
    const entry = await queueEvents(app, collection, 'delete');
    return { collection: name, filter, ...(entry ? { update: removedUpdate(entry) } : { remove: true }) };
  }
  const { record } = write;
  const entry = await queueEvents(app, collection, record.action);
  return { collection: name, filter, update: together(outboxOperators(entry), updateOf(record)) };
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
  if (explained instanceof PathBlocked) return new WriteRefused(index, null);
  return explained instanceof AppError ? new WriteRefused(index, explained) : explained;
}

const TOO_MANY_TOGETHER =
  'Too large: what is written together may have 10000 index entries, one for each item of an indexed array';
