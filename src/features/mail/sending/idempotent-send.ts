import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict, unprocessable, overLimit } from '../../../errors.js';
import { KEY_KEPT_MS } from '../../../http/routes/idempotency-key.js';
import { isDuplicateKey, type Store, unlessDuplicate } from '../../../platform/database/database.js';
import { sha256Hex } from '../../../platform/ids.js';
import type { Project } from '../../projects/project.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { sizeClass, REPEATED_REQUESTS } from '../../quota/service-records.js';
import { mailLogStore, advanceLog, queuedLog, requireRoomForMails, type MailLog, acceptMail } from '../mail-log.js';
import type { BatchItem, MailRequest } from '../read-mail.js';
import { readMailQuota, refundMailQuota, reserveMailQuota, commitMailQuota } from './mail-quota.js';
import { enqueueMail, presentQueued, sendMail, type QueuedMail } from './send-mail.js';
import type { OutgoingMail, SendOutcome } from '../../../platform/mail-provider/mail-provider.js';
import { withTimeout } from '../../../platform/time/with-timeout.js';
import { chooseProvider, resolveSender } from '../project-mail.js';
import { waitForTurn } from './provider-pace.js';

/** The fate of one item, in the order of the request; `partial` as a SendOutcome has it. */
type BatchResult = { id: string; partial?: string } | { error: { message: string } };

const AT_ONCE = 5;
/** Turn and call together stay below ten seconds, whatever else is queued: a client, or a proxy, waits no longer. */
const TURN_LIMIT_MS = 3000;
const CALL_LIMIT_MS = 6000;

/**
 * Sends up to 100 mails straight to the provider, by one call where it has one, a slot each; slots of refused items are
 * given back. 429 when not all of them fit the quota, or the provider's rate leaves no turn: nothing is sent then.
 * `batchId` is the provider's idempotency key.
 */
export async function sendBatch(
  app: App,
  project: Project,
  items: readonly BatchItem[],
  batchId = new ObjectId().toHexString(),
): Promise<BatchResult[]> {
  const from = resolveSender(app, project);
  const { provider, usingByok } = chooseProvider(app, project);
  const mails = items.map((item): OutgoingMail => ({ from, ...item }));
  const logs = mails.map((mail) => queuedLog(app, project._id, mail, { usingByok }));
  await requireRoomForMails(app, project._id, logs);
  const later = provider.sendBatch ? await waitForTurn(app, project, { urgent: true, mostMs: TURN_LIMIT_MS }) : null;
  if (later) {
    const retryAfterSeconds = (later.getTime() - app.clock.now()) / 1000;
    throw overLimit('RATE_LIMITED', 'The mail provider’s rate limit is exceeded', { retryAfterSeconds });
  }
  await reserveMailQuota(
    app,
    project,
    logs.map((log) => log._id),
  );
  await mailLogStore(app).insertMany(logs);
  if (!provider.sendBatch) return sendOneByOne(app, project, logs, mails);
  const outcomes = await provider.sendBatch(mails, batchId, CALL_LIMIT_MS);
  return Promise.all(logs.map((log, at) => noteOutcome(app, log, outcomes[at]!)));
}

/** Sends each mail by a call of its own; those under way when the time is up go on, and their logs tell the end. */
async function sendOneByOne(
  app: App,
  project: Project,
  logs: readonly MailLog[],
  mails: readonly OutgoingMail[],
): Promise<BatchResult[]> {
  const { provider } = chooseProvider(app, project);
  const results = logs.map((): BatchResult => ({ error: { message: 'Under way: GET /api/mail/logs tells the end' } }));
  const waiting = logs.entries();
  const work = Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [at, log] of waiting) {
        results[at] = await noteOutcome(app, log, await provider.send(mails[at]!, log._id.toHexString()));
      }
    }),
  );
  await withTimeout(work, TURN_LIMIT_MS + CALL_LIMIT_MS, null);
  return [...results];
}

/**
 * A refused item gives its slot back; one with an unknown outcome still counts. Neither is tried again: the caller
 * treats each item by itself.
 */
async function noteOutcome(app: App, log: MailLog, result: SendOutcome): Promise<BatchResult> {
  if (result.outcome === 'accepted') {
    await acceptMail(app, log, result);
    return { id: result.id, ...(result.partial !== undefined && { partial: result.partial }) };
  }
  if (result.outcome === 'unknown') await commitMailQuota(app, log.projectId, [log._id]);
  if (await advanceLog(app, { _id: log._id }, 'failed', { reason: result.reason })) {
    await refundMailQuota(app, log.projectId, log._id);
  }
  return { error: { message: result.reason } };
}

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
export async function sendMailIdempotently(
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
  return runIdempotently(app, project, {
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
      await refundMailQuota(app, project._id, id!);
      return send(record);
    },
  });
}

/** The answer for a mail that was stored, which is handed to the worker again: harmless to repeat. */
async function findQueued(app: App, project: Project, id: ObjectId): Promise<QueuedMail | null> {
  const log = await mailLogStore(app).findOne({ _id: id, projectId: project._id });
  if (!log) return null;
  if (log.status === 'queued') await enqueueMail(app, log);
  return presentQueued(log, await readMailQuota(app, project));
}

/**
 * As sendBatch, once per Idempotency-Key and project within 24 hours: the same key and body get the first answer again.
 * 409 REQUEST_UNDER_WAY beside an attempt that has no answer yet; 409 BATCH_UNCERTAIN if one was interrupted and it
 * is unknown what the provider took; 422 for another body. Without a key it is sent.
 */
export async function sendBatchIdempotently(
  app: App,
  project: Project,
  items: readonly BatchItem[],
  key: string | null,
): Promise<BatchResult[]> {
  if (key === null) return sendBatch(app, project, items);
  return runIdempotently(app, project, {
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

async function runIdempotently<T>(app: App, project: Project, attempt: Attempt<T>): Promise<T> {
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
