import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict, invalid, unprocessable } from '../../../errors.js';
import { isDuplicateKey, type Store } from '../../../platform/database/database.js';
import { sha256Hex } from '../../../platform/ids.js';
import type { Project } from '../../projects/project.js';
import type { BatchItem } from '../read-mail.js';
import { sendBatch, type BatchResult } from './send-batch.js';

/** The memory of one Idempotency-Key; removed with those of documents when it has expired. */
interface BatchRecord {
  _id: string;
  projectId: ObjectId;
  bodyHash: string;
  /** None: the mails have ids of their own. */
  ids: ObjectId[];
  answer: string | null;
  /** Until then an attempt without an answer is under way. */
  leaseUntil: Date;
  expiresAt: Date;
}

const KEPT_MS = 24 * 3_600_000;
/** Longer than a batch takes. */
const LEASE_MS = 30_000;
const KEY_FORM = /^[\x21-\x7e]{1,255}$/;

/**
 * As sendBatch, once per Idempotency-Key and project within 24 hours: the same key and body get the first answer again.
 * 409 REQUEST_UNDER_WAY beside an attempt that has no answer yet; 409 BATCH_UNCERTAIN when one was cut off, as nobody
 * knows what the provider took; 422 for another body. Without a key it is sent.
 */
export async function sendBatchOnce(
  app: App,
  project: Project,
  items: readonly BatchItem[],
  key: string,
): Promise<BatchResult[]> {
  if (key === '') return sendBatch(app, project, items);
  if (!KEY_FORM.test(key)) {
    throw invalid('INVALID_IDEMPOTENCY_KEY', 'An Idempotency-Key has 1 to 255 visible ASCII characters');
  }
  const store: Store<BatchRecord> = app.db.collection<BatchRecord>('idempotency_keys');
  const _id = sha256Hex([project._id.toHexString(), 'mail batch', key].join('\n'));
  const bodyHash = sha256Hex(JSON.stringify(items));
  const earlier = await begin(app, store, { _id, projectId: project._id, bodyHash });
  if (earlier !== null) return earlier;
  try {
    const results = await sendBatch(app, project, items, _id);
    await store.updateOne({ _id }, { $set: { answer: JSON.stringify(results) } });
    return results;
  } catch (error) {
    // Nothing was sent: the key is free for another try.
    if (error instanceof AppError) await store.deleteOne({ _id, answer: null });
    throw error;
  }
}

/** Notes the attempt; the answer of an earlier one when there is one. */
async function begin(
  app: App,
  store: Store<BatchRecord>,
  request: Pick<BatchRecord, '_id' | 'projectId' | 'bodyHash'>,
): Promise<BatchResult[] | null> {
  const now = app.clock.now();
  await store.deleteOne({ _id: request._id, expiresAt: { $lte: new Date(now) } });
  const [leaseUntil, expiresAt] = [new Date(now + LEASE_MS), new Date(now + KEPT_MS)];
  try {
    await store.insertOne({ ...request, ids: [], answer: null, leaseUntil, expiresAt });
    return null;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
  const earlier = await store.findOne({ _id: request._id });
  if (earlier && earlier.bodyHash !== request.bodyHash) {
    throw unprocessable('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used with another body');
  }
  if (earlier?.answer) return JSON.parse(earlier.answer) as BatchResult[];
  if (earlier && earlier.leaseUntil.getTime() <= now) {
    const message =
      'The first attempt was cut off: what became of its mails is in GET /api/mail/logs. Use a new Idempotency-Key for those that are missing';
    throw conflict('BATCH_UNCERTAIN', message);
  }
  throw conflict('REQUEST_UNDER_WAY', 'A request with this Idempotency-Key is under way', { retryAfterSeconds: 1 });
}
