import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { overLimit } from '../../../errors.js';
import type { OutgoingMail, SendOutcome } from '../../../platform/mail-provider/mail-provider.js';
import { withTimeout } from '../../../platform/time/with-timeout.js';
import type { Project } from '../../projects/project.js';
import { acceptMail } from '../close-mail.js';
import { advanceLog, mailLogStore, queuedLog, requireRoomForMails, type MailLog } from '../mail-log.js';
import { refundSlot, reserveSlots, settleSlots } from './mail-slots.js';
import { chooseProvider, resolveSender } from '../project-mail.js';
import { waitForTurn } from './provider-pace.js';
import type { BatchItem } from '../read-mail.js';

/** The fate of one item, in the order of the request; `partial` as a SendOutcome has it. */
export type BatchResult = { id: string; partial?: string } | { error: { message: string } };

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
  await reserveSlots(
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
 * A refused item gives its slot back; one whose fate nobody knows keeps it. Neither is tried again: the caller treats
 * each item by itself.
 */
async function noteOutcome(app: App, log: MailLog, result: SendOutcome): Promise<BatchResult> {
  if (result.outcome === 'accepted') {
    await acceptMail(app, log, result);
    return { id: result.id, ...(result.partial !== undefined && { partial: result.partial }) };
  }
  if (result.outcome === 'unknown') await settleSlots(app, log.projectId, [log._id]);
  if (await advanceLog(app, { _id: log._id }, 'failed', { reason: result.reason })) {
    await refundSlot(app, log.projectId, log._id);
  }
  return { error: { message: result.reason } };
}
