import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { AppError, tooLarge } from '../../../errors.js';
import type { WriteStep } from '../../../platform/database/database.js';
import { OURS, ownTurn, takeTurns } from '../../../turns.js';
import { documentsName } from '../../collections/collection.js';
import { withFolded, withFoldedPaths } from '../../collections/fields/nocase.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { outboxOperators, withOutbox } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import { removeAttachedLater } from './attached-files.js';
import type { StoredDocument } from './document.js';
import { growthFilter, grownTooLarge } from './document-growth.js';
import {
  checkReferences,
  concernsReferences,
  conditionOf,
  type CheckedWrite,
  type ReferenceCheck,
} from './reference-checks.js';
import { removedUpdate, together, updateOf, type RecordWrite } from './record-update.js';
import { explainWriteError, PathBlocked, TRANSACTION_TOO_LARGE } from './refused-writes.js';
import { settleLater } from './settle-later.js';
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
  const checked: CheckedWrite[] = [];
  const isLarge = writes.length > FEW;
  const turn = takeTurns(OURS, isLarge ? TOGETHER_MS : Infinity);
  for (const [index, write] of writes.entries()) {
    await turn();
    await ofWrite(index, async () => {
      const planned = await planReferences(app, write, writes.slice(0, index));
      checked.push(planned);
      const growth = growthOf(app, planned.write);
      const step = await readStep(app, planned.write, growth);
      // Whether the writer may at all comes first, and nothing is written before all is checked.
      if (planned.checks.length > 0 && 'filter' in step) {
        const { collection, filter } = step;
        plan.push({ index, step: { collection, filter, matches: true } });
      }
      for (const check of planned.checks) plan.push({ index, step: conditionOf(check), check });
      plan.push({ index, step, isWrite: true, growth });
    });
  }
  for (const write of writes) if ('removed' in write) await removeAttachedLater(app, write.collection, write.id);
  const steps = plan.map(({ step }) => step);
  const settle = await settleLater(app, checked);
  let written;
  try {
    if (isLarge) await ownTurn();
    written = await app.db.writeTogether(last ? [...steps, last] : steps);
    if (isLarge) await ownTurn();
  } catch (error) {
    throw await readRefusal(app, error, plan, writes.length);
  }
  await settle();
  const documents: StoredDocument[] = [];
  for (const [at, { index, isWrite }] of plan.entries()) {
    if (!isWrite) continue;
    await turn();
    const { before, after } = written[at] as { before: StoredDocument | null; after: StoredDocument | null };
    const write = writes[index]!;
    const action = 'insert' in write ? 'insert' : 'removed' in write ? 'delete' : write.record.action;
    const document = (after ?? before)!;
    await tellOf(app, write.collection, action, { documents: [document], ...(before && { before }) });
    documents.push(document);
  }
  return documents;
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
  /** Part of the step's filter: what the document must meet so that it does not grow too large. */
  growth?: Document | null;
  check?: ReferenceCheck;
}

async function planReferences(app: App, write: RecordWrite, earlier: readonly RecordWrite[]): Promise<CheckedWrite> {
  if (!(await concernsReferences(app, write))) return { write, checks: [], settled: null };
  return checkReferences(app, write, earlier);
}

async function readStep(app: App, write: RecordWrite, growth: Document | null): Promise<WriteStep> {
  const { collection } = write;
  const name = documentsName(collection);
  if ('insert' in write) {
    await requireRoomFor(app, collection.projectId, { documents: [write.insert] });
    return { collection: name, insert: withOutbox(write.insert, await queueEvents(app, collection, 'insert')) };
  }
  const { filter } = write;
  if ('removed' in write) {
    const entry = await queueEvents(app, collection, 'delete');
    return { collection: name, filter, ...(entry ? { update: removedUpdate(entry) } : { remove: true }) };
  }
  const { record } = write;
  const { isOwn = false, set, operators } = record;
  if (!isOwn) await requireRoomFor(app, collection.projectId, { change: { ...operators, ...set } });
  const entry = await queueEvents(app, collection, record.action);
  const fitting = growth ? { $and: [filter, growth] } : filter;
  return { collection: name, filter: fitting, update: together(outboxOperators(entry), updateOf(record)) };
}

function growthOf(app: App, write: RecordWrite): Document | null {
  if (!('record' in write) || write.record.isOwn) return null;
  const { set, unset = [], operators } = write.record;
  return growthFilter(app, { ...operators, ...set }, unset);
}

/** Whether a document would be changed but for its size. */
async function isGrowing(app: App, step: WriteStep, growth: Document): Promise<boolean> {
  if (!('filter' in step)) return false;
  const [filter] = (step.filter as { $and: Document[] }).$and;
  const stored = app.db.collection<StoredDocument>(step.collection);
  return (await stored.findOne({ $and: [filter!, { $nor: [growth] }] }, { projection: { _id: 1 } })) !== null;
}

async function ofWrite(index: number, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw error instanceof AppError ? new WriteRefused(index, error) : error;
  }
}

/** What the database says of a batch, for its caller; faults that are no refusal stay as they are. */
async function readRefusal(
  app: App,
  error: unknown,
  plan: readonly PlannedStep[],
  lastIndex: number,
): Promise<unknown> {
  const { step, cause } = error as { step?: unknown; cause?: unknown };
  if (typeof step !== 'number') return error;
  const {
    index,
    check,
    growth,
    step: refused,
  }: Partial<PlannedStep> & { index: number } = plan[step] ?? {
    index: lastIndex,
  };
  if (cause === null) {
    if (growth && refused && (await isGrowing(app, refused, growth))) return new WriteRefused(index, grownTooLarge());
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
