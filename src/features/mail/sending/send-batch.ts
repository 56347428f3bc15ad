import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { SendOutcome } from '../../../platform/mail-provider/mail-provider.js';
import type { Project } from '../../projects/project.js';
import { acceptMail } from '../close-mail.js';
import { advanceLog, mailLogStore, openSealedMail, sealMail, type MailLog } from '../mail-log.js';
import { refundSlot, reserveSlots, settleSlots } from './mail-slots.js';
import { chooseProvider, resolveSender } from '../project-mail.js';
import { refuseLongWait, waitForTurn } from './provider-pace.js';
import type { BatchItem } from '../read-mail.js';

/** The fate of one item, in the order of the request. */
export type BatchResult = { id: string } | { error: { message: string } };

const AT_ONCE = 5;

/**
 * Sends up to 100 mails straight to the provider, a slot each; slots of refused items are given back. 429 when not all
 * of them fit the quota: nothing is sent then.
 */
export async function sendBatch(app: App, project: Project, items: readonly BatchItem[]): Promise<BatchResult[]> {
  const from = resolveSender(app, project);
  const { usingByok } = chooseProvider(app, project);
  const now = new Date(app.clock.now());
  const logs = items.map((item): MailLog => {
    const _id = new ObjectId();
    return {
      _id,
      projectId: project._id,
      providerEmailId: null,
      to: item.to,
      subject: item.subject,
      status: 'queued',
      usingByok,
      templateUsed: null,
      reason: null,
      sealedMail: sealMail(app, _id, { from, ...item }),
      createdAt: now,
      sentAt: now,
    };
  });
  await refuseLongWait(app, project);
  await reserveSlots(
    app,
    project,
    logs.map((log) => log._id),
  );
  await mailLogStore(app).insertMany(logs);
  const results = new Array<BatchResult>(logs.length);
  const waiting = logs.entries();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [index, log] of waiting) results[index] = await sendItem(app, project, log);
    }),
  );
  return results;
}

async function sendItem(app: App, project: Project, log: MailLog): Promise<BatchResult> {
  await waitForTurn(app, project);
  const result = await chooseProvider(app, project).provider.send(
    openSealedMail(app, log._id, log.sealedMail!),
    log._id.toHexString(),
  );
  if (result.outcome === 'accepted') {
    await acceptMail(app, log, result.id);
    return { id: result.id };
  }
  return rejectItem(app, log, result);
}

/**
 * A refused item gives its slot back; one whose fate nobody knows keeps it. Neither is tried again: the caller treats
 * each item by itself.
 */
async function rejectItem(
  app: App,
  log: MailLog,
  result: Exclude<SendOutcome, { outcome: 'accepted' }>,
): Promise<BatchResult> {
  if (result.outcome === 'unknown') await settleSlots(app, log.projectId, [log._id]);
  if (await advanceLog(app, { _id: log._id }, 'failed', { reason: result.reason }))
    await refundSlot(app, log.projectId, log._id);
  return { error: { message: result.reason } };
}
