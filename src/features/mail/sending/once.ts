import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict, unprocessable } from '../../../errors.js';
import { KEY_KEPT_MS } from '../../../http/routes/idempotency-key.js';
import { isDuplicateKey, type Store, unlessDuplicate } from '../../../platform/database/database.js';
import { sha256Hex } from '../../../platform/ids.js';
import type { Project } from '../../projects/project.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { sizeClass, REPEATED_REQUESTS } from '../../quota/kept-records.js';
import { mailLogStore } from '../mail-log.js';
import type { BatchItem, MailRequest } from '../read-mail.js';
import { readSlots, refundSlot } from './mail-slots.js';
import { sendBatch, type BatchResult } from './send-batch.js';
import { enqueueMail, presentQueued, sendMail, type QueuedMail } from './send-mail.js';

/** The memory of one Idempotency-Key; removed with those of documents when it has expired. */
interface KeyRecord {
  _id: string;
  projectId: ObjectId;
  bodyHash: string;
  /** Of the mail that the key stands for; none for a batch, whose mails have ids of their own. */
  ids: ObjectId[];
  answer: string | null;
  /** What it counts for in the project's quota. */
  size: number;
  /** Until then an attempt without an answer is under way. */
  leaseUntil: Date;
  expiresAt: Date;
}

/** Of a record without its answer, with its index entries. */
const RECORD_BYTES = 400;
/** Longer than an attempt takes. */
const LEASE_MS = 30_000;

interface Attempt<T> {
  kind: 'mail' | 'mail batch';
  key: string;
  body: unknown;
  ids: ObjectId[];
  run(record: KeyRecord): Promise<T>;
  /** After an attempt that was cut off. */
  resume(record: KeyRecord): Promise<T>;
}

/**
 * As sendMail, once per Idempotency-Key and project within 24 hours: the same key and body get the first answer again,
 * also after an attempt that was cut off anywhere. 409 REQUEST_UNDER_WAY beside an attempt that has no answer yet; 422
 * for another body. Without a key it is sent.
 */
export async function sendMailOnce(
  app: App,
  project: Project,
  request: MailRequest,
  key: string | null,
): Promise<QueuedMail> {
  if (key === null) return sendMail(app, project, request);
  const send = async ({ ids: [id] }: KeyRecord): Promise<QueuedMail> => {
    try {
      return await sendMail(app, project, request, id);
    } catch (error) {
      // An attempt that was taken for lost has stored it after all.
      if (isDuplicateKey(error)) return (await findQueued(app, project, id!))!;
      throw error;
    }
  };
  return answerOnce(app, project, {
    kind: 'mail',
    key,
    body: request,
    ids: [new ObjectId()],
    run: send,
    async resume(record) {
      const [id] = record.ids;
      const queued = await findQueued(app, project, id!);
      if (queued) return queued;
      // Cut off between its slot and its log.
      await refundSlot(app, project._id, id!);
      return send(record);
    },
  });
}

/** The answer for a mail that was stored, which is handed to the worker again: harmless to repeat. */
async function findQueued(app: App, project: Project, id: ObjectId): Promise<QueuedMail | null> {
  const log = await mailLogStore(app).findOne({ _id: id, projectId: project._id });
  if (!log) return null;
  if (log.status === 'queued') await enqueueMail(app, log);
  return presentQueued(log, await readSlots(app, project));
}

/**
 * As sendBatch, once per Idempotency-Key and project within 24 hours: the same key and body get the first answer again.
 * 409 REQUEST_UNDER_WAY beside an attempt that has no answer yet; 409 BATCH_UNCERTAIN when one was cut off, as nobody
 * knows what the provider took; 422 for another body. Without a key it is sent.
 */
export async function sendBatchOnce(
  app: App,
  project: Project,
  items: readonly BatchItem[],
  key: string | null,
): Promise<BatchResult[]> {
  if (key === null) return sendBatch(app, project, items);
  return answerOnce(app, project, {
    kind: 'mail batch',
    key,
    body: items,
    ids: [],
    run: ({ _id }) => sendBatch(app, project, items, _id),
    resume() {
      const message =
        'The first attempt was cut off: what became of its mails is in GET /api/mail/logs. Use a new Idempotency-Key for those that are missing';
      throw conflict('BATCH_UNCERTAIN', message);
    },
  });
}

async function answerOnce<T>(app: App, project: Project, attempt: Attempt<T>): Promise<T> {
  const { kind, key, body, ids } = attempt;
  const store: Store<KeyRecord> = app.db.collection<KeyRecord>(REPEATED_REQUESTS);
  const now = app.clock.now();
  const mine: KeyRecord = {
    _id: sha256Hex([project._id.toHexString(), kind, key].join('\n')),
    projectId: project._id,
    bodyHash: sha256Hex(JSON.stringify(body)),
    ids,
    answer: null,
    size: sizeClass(RECORD_BYTES),
    leaseUntil: new Date(now + LEASE_MS),
    expiresAt: new Date(now + KEY_KEPT_MS),
  };
  await requireRoomFor(app, project._id, { kept: mine.size });
  const earlier = await begin(store, mine, now);
  if (earlier?.answer != null) return JSON.parse(earlier.answer) as T;
  const { _id } = mine;
  try {
    const answer = earlier ? await attempt.resume(earlier) : await attempt.run(mine);
    const text = JSON.stringify(answer);
    await store.updateOne({ _id }, { $set: { answer: text, size: sizeClass(RECORD_BYTES + text.length) } });
    return answer;
  } catch (error) {
    // Nothing was sent: the key is free for another try.
    if (error instanceof AppError && !earlier) await store.deleteOne({ _id, answer: null });
    throw error;
  }
}

/** Notes the attempt. An earlier one that has its answer, or was cut off and is this one's to finish; null without. */
async function begin(store: Store<KeyRecord>, mine: KeyRecord, now: number): Promise<KeyRecord | null> {
  const { _id } = mine;
  await store.deleteOne({ _id, expiresAt: { $lte: new Date(now) } });
  if (await unlessDuplicate(store.insertOne(mine))) return null;
  const earlier = await store.findOne({ _id });
  if (earlier && earlier.bodyHash !== mine.bodyHash) {
    throw unprocessable('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used with another body');
  }
  if (earlier?.answer != null) return earlier;
  // One of those who find it cut off goes on with it.
  const taken = await store.findOneAndUpdate(
    { _id, answer: null, leaseUntil: { $lte: new Date(now) } },
    { $set: { leaseUntil: mine.leaseUntil } },
  );
  if (taken) return taken;
  throw conflict('REQUEST_UNDER_WAY', 'A request with this Idempotency-Key is under way', { retryAfterSeconds: 1 });
}
