import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, unprocessable, type ErrorKind } from '../../../errors.js';
import { KEY_KEPT_MS } from '../../../http/routes/idempotency-key.js';
import { isDuplicateKey, type Store } from '../../../platform/database/database.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { sha256Hex } from '../../../platform/ids.js';
import type { WriteTarget } from './write-target.js';

/** The memory of one idempotency key. */
interface IdempotencyRecord {
  _id: string;
  projectId: ObjectId;
  bodyHash: string;
  /** The ids that the request's documents get, the same for every attempt. */
  ids: ObjectId[];
  /** The answer as JSON once there is one. */
  answer: string | null;
  expiresAt: Date;
}

export interface RepeatableRequest {
  place: WriteTarget;
  action: 'insert' | 'bulk';
  key: string;
  body: unknown;
}

/** A checked request, ready to be carried out under the ids it is given: its own, or those of its first attempt. */
export interface PreparedRequest<T> {
  ids: ObjectId[];
  run(ids: readonly ObjectId[]): Promise<T>;
}

/** Answers after which nothing was stored: the key is free again for a corrected request. */
const REFUSALS: ReadonlySet<ErrorKind> = new Set(['invalid', 'forbidden', 'conflict', 'tooLarge']);

/** Code of the 409 for a request whose first attempt may still succeed. */
export const UNDER_WAY = 'REQUEST_UNDER_WAY';

/**
 * Carries a request out once per key, collection and writer within 24 hours: the same key and body gets the first
 * answer again, another body 422. Attempts at the same time, and one after a crash, work with the ids that were written
 * down first, so that they cannot store anything twice.
 */
export async function runIdempotent<T>(
  app: App,
  request: RepeatableRequest,
  prepare: () => PreparedRequest<T> | Promise<PreparedRequest<T>>,
): Promise<T> {
  const store = answerStore(app);
  const _id = requestId(request);
  const bodyHash = sha256Hex(JSON.stringify(request.body) ?? '');
  const earlier = await findEarlier(app, store, _id);
  if (earlier?.bodyHash === bodyHash && earlier.answer !== null) return JSON.parse(earlier.answer) as T;
  if (earlier && earlier.bodyHash !== bodyHash) throw otherBody();
  const prepared = await prepare();
  const record =
    earlier ??
    (await remember(app, store, { _id, projectId: request.place.collection.projectId, bodyHash, ids: prepared.ids }));
  if (record.bodyHash !== bodyHash) throw otherBody();
  try {
    const answer = await prepared.run(record.ids);
    await keepAnswer(app, store, _id, JSON.stringify(answer));
    return answer;
  } catch (error) {
    if (error instanceof AppError && REFUSALS.has(error.kind) && error.code !== UNDER_WAY) {
      await store.deleteOne({ _id, answer: null });
    }
    throw error;
  }
}

/**
 * Keeps the answer for repeated requests. A failure to keep it refuses nothing: a repeated request finds the documents
 * by their ids.
 */
async function keepAnswer(app: App, store: Store<IdempotencyRecord>, _id: string, answer: string): Promise<void> {
  try {
    await store.updateOne({ _id, answer: null }, { $set: { answer } });
  } catch (error) {
    app.log.error({ err: error }, 'the answer to a request with an Idempotency-Key could not be kept');
  }
}

function requestId({ place: { collection, writer }, action, key }: RepeatableRequest): string {
  return sha256Hex([collection._id.toHexString(), writer ? (writer.userId ?? 'anyone') : '', action, key].join('\n'));
}

/** Removes keys older than 24 hours and returns their number. */
export async function removeExpiredRecords(app: App): Promise<number> {
  const expired = { expiresAt: { $lte: new Date(app.clock.now()) } };
  return (await answerStore(app).deleteMany(expired)).deletedCount;
}

/** Removes what is remembered of a project. */
export async function removeProjectRecords(app: App, projectId: ObjectId): Promise<void> {
  await answerStore(app).deleteMany({ projectId });
}

const answerStore = storeOf<IdempotencyRecord>('idempotency_keys');

/** An expired record may still be there: they are removed once an hour. */
async function findEarlier(app: App, store: Store<IdempotencyRecord>, _id: string): Promise<IdempotencyRecord | null> {
  const found = await store.findOne({ _id });
  if (!found || found.expiresAt.getTime() > app.clock.now()) return found;
  await store.deleteOne({ _id, expiresAt: found.expiresAt });
  return null;
}

async function remember(
  app: App,
  store: Store<IdempotencyRecord>,
  first: Pick<IdempotencyRecord, '_id' | 'projectId' | 'bodyHash' | 'ids'>,
): Promise<IdempotencyRecord> {
  const record: IdempotencyRecord = { ...first, answer: null, expiresAt: new Date(app.clock.now() + KEY_KEPT_MS) };
  try {
    await store.insertOne(record);
    return record;
  } catch (error) {
    const winner = isDuplicateKey(error) ? await store.findOne({ _id: first._id }) : null;
    if (!winner) throw error;
    return winner;
  }
}

function otherBody(): AppError {
  return unprocessable('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used with another body: use a new key');
}
