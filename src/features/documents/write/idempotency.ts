import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { unprocessable, type AppError } from '../../../errors.js';
import { KEY_KEPT_MS } from '../../../http/routes/idempotency-key.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import { type WriteTurn, storeOf } from '../../../platform/database/database.js';
import { sha256Hex } from '../../../platform/ids.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { sizeClass, REPEATED_REQUESTS } from '../../quota/service-records.js';
import type { Writer } from '../../access/access-rules.js';
import { type Committed, type DecidedWrite, commitWrite } from '../store/commit-writes.js';
import { askHooks } from './ask-hooks.js';
import type { WriteTarget } from './write-target.js';

/**
 * The memory of one idempotency key. It holds no word of the body or of the answer: what was removed permanently does
 * not come back by it.
 */
interface IdempotencyRecord {
  _id: string;
  projectId: ObjectId;
  bodyHash: string;
  /** Those of the documents that it has stored or changed. */
  ids: ObjectId[];
  /** What it counts for in the project's quota, and in the share of the user `by`. */
  size: number;
  by?: string;
  expiresAt: Date;
}

export interface RepeatableRequest {
  place: WriteTarget;
  action: 'insert' | 'upsert' | 'bulk' | 'update' | 'delete' | 'batch';
  /** Null: it cannot be repeated. */
  key: string | null;
  body: unknown;
}

/** Bytes of a record with its index entries, and of each id in it. */
const RECORD_BYTES = 400;
const ID_BYTES = 16;

/** Notes in the transaction that stores the effect of a request that it was carried out, and of which ids that was. */
export type Mark = (ids: readonly ObjectId[]) => Promise<WriteTurn> | undefined;

const NO_MARK: Mark = () => undefined;

/** Thrown by a mark: another attempt of the request has been carried out. */
class CarriedOut extends Error {
  constructor(readonly ids: readonly ObjectId[]) {
    super('a request with this Idempotency-Key was carried out');
  }
}

/** What a request has come to; or, where it was carried out before, the documents of which it is answered again. */
export type Once<T> = { done: T; again?: never } | { done?: never; again: readonly ObjectId[] };

/**
 * Carries a request out once per key, collection and writer within 24 hours: the same key and body is to be answered
 * from what is stored then, another body is 422. The mark is stored with the effect, so that neither is there without
 * the other; a refused request leaves the key free.
 */
export async function executeOnce<T>(
  app: App,
  request: RepeatableRequest,
  carryOut: (mark: Mark) => Promise<T>,
): Promise<Once<T>> {
  if (request.key === null) return { done: await carryOut(NO_MARK) };
  const { writer, collection } = request.place;
  const { projectId } = collection;
  const bodyHash = sha256Hex(JSON.stringify(request.body) ?? '');
  const _id = requestId(request, bodyHash);
  const requireNew = (earlier: IdempotencyRecord | null): void => {
    if (!earlier || earlier.expiresAt.getTime() <= app.clock.now()) return;
    if (earlier.bodyHash !== bodyHash) throw otherBody();
    throw new CarriedOut(earlier.ids);
  };
  const mark: Mark = async (ids) => {
    const size = sizeClass(RECORD_BYTES + ids.length * ID_BYTES);
    await requireRoomFor(app, projectId, { kept: size });
    const expiresAt = new Date(app.clock.now() + KEY_KEPT_MS);
    const by = writer?.userId ? { by: writer.userId } : {};
    const record = { _id, projectId, bodyHash, ids: [...ids], ...by, size, expiresAt };
    return {
      collection: REPEATED_REQUESTS,
      id: _id,
      run(stored) {
        requireNew(stored as IdempotencyRecord | null);
        return record;
      },
    };
  };
  try {
    // Spares the work that the mark would refuse.
    requireNew(await requestStore(app).findOne({ _id }));
    return { done: await carryOut(mark) };
  } catch (error) {
    if (!(error instanceof CarriedOut)) throw error;
    // What was read may not be on the disk yet: a write that changes nothing is answered when it is.
    await requestStore(app).updateOne({ _id }, { $set: { bodyHash } });
    return { again: error.ids };
  }
}

function requestId({ place: { collection, writer }, action, key }: RepeatableRequest, bodyHash: string): string {
  return sha256Hex([collection._id.toHexString(), ownerOfKey(writer, bodyHash), action, key].join('\n'));
}

/**
 * Whose key it is. Callers who are not signed in may send each other's keys without knowing it: theirs belongs to the
 * network and the body, so that a second caller is neither refused nor given the first one's document.
 */
function ownerOfKey(writer: Writer, bodyHash: string): string {
  if (!writer) return '';
  return writer.userId ?? `anonymous ${writer.network} ${bodyHash}`;
}

/**
 * Carries out the write of one document that `open` prepares, once per key, with the project's own code between
 * decision and write.
 */
export function writeOne(
  app: App,
  request: RepeatableRequest,
  open: () => DecidedWrite | Promise<DecidedWrite>,
): Promise<Once<Committed>> {
  const { place, action, key } = request;
  return executeOnce(app, request, async (mark) => {
    const write = await open();
    const [asked] = askHooks(app, place.hooked, [write], { isOne: true, idempotencyKey: key });
    return commitWrite(app, asked!, await mark(action === 'delete' ? [] : [write.id]));
  });
}

/** Removes keys older than 24 hours and returns their number. */
export async function removeExpiredRecords(app: App): Promise<number> {
  const expired = { expiresAt: { $lte: new Date(app.clock.now()) } };
  return (await requestStore(app).deleteMany(expired)).deletedCount;
}

export const forgetAnswersJob: JobDefinition<App> = {
  name: 'documents.removeExpiredRecords',
  retry: { delaysMs: [60_000] },
  async run(app) {
    if (await isClockSteady(app)) await removeExpiredRecords(app);
  },
};

/** Removes what is remembered of a project. */
export async function removeProjectRecords(app: App, projectId: ObjectId): Promise<void> {
  await requestStore(app).deleteMany({ projectId });
}

const requestStore = storeOf<IdempotencyRecord>(REPEATED_REQUESTS);

function otherBody(): AppError {
  return unprocessable('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used with another body: use a new key');
}
